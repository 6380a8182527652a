"""Errors written for the person who reads them: what failed, the tool's own words, what to do."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping  # Only then: every command loads this module.


class RunyardError(Exception):
    """An error that a user can understand and fix. The command line prints it as one message.

    `what` names the failure and the thing it happened to; `said` quotes the operating system or
    another tool; `mend` is the next thing to try.
    """

    exit_code = 1

    def __init__(self, what: str, *, said: object = None, mend: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.said = None if said is None else str(said)
        self.mend = mend

    def to_json(self) -> dict[str, str | None]:
        """The error as data: for `--json`, and to pass it to another process."""
        return {
            "error": type(self).__name__,
            "what": self.what,
            "said": self.said,
            "mend": self.mend,
        }


class UsageError(RunyardError):
    """The command line itself is wrong."""

    exit_code = 2


class ConfigError(RunyardError):
    """A file of the user asks for something impossible; nothing was started."""

    exit_code = 2


class StateError(RunyardError):
    """The state folder cannot be used."""


class ServerError(RunyardError):
    """The server cannot be started, reached, or did not do what was asked."""


class NotFoundError(RunyardError):
    """What the user named does not exist."""


class ProgramError(RunyardError):
    """The user's program could not be started; 125 to 127 as `env` and `timeout` use them."""

    def __init__(
        self, what: str, *, exit_code: int, said: object = None, mend: str | None = None
    ) -> None:
        super().__init__(what, said=said, mend=mend)
        self.exit_code = exit_code


def format_error(error: RunyardError) -> str:
    """What failed, the tool's own words, what to do next."""
    lines = [f"runyard: {error.what}"]
    if error.said:
        lines.append(f"  said: {error.said}")
    if error.mend:
        lines.append(f"  try:  {error.mend}")
    return "\n".join(lines)


_BY_NAME: Mapping[str, type[RunyardError]] = {
    kind.__name__: kind for kind in (RunyardError, StateError, ServerError, NotFoundError)
}


def from_json(record: Mapping[str, str | None]) -> RunyardError:
    """The error that another process passed on with `RunyardError.to_json`."""
    kind = _BY_NAME.get(record.get("error") or "", RunyardError)
    return kind(
        record.get("what") or "unknown error", said=record.get("said"), mend=record.get("mend")
    )


def of_system(error: OSError) -> RunyardError:
    """What the operating system refused, where nobody expected it."""
    import errno

    mends = {
        errno.ENOSPC: "free some space on the disk that it writes to",
        errno.EDQUOT: "your quota there is used up: free some space",
        errno.EACCES: "look who may read and write there: ls -ld",
        errno.EPERM: "look who may read and write there: ls -ld",
        errno.EROFS: "choose another place: that one cannot be written to",
        errno.ENOENT: "check the path, and that its folder is there",
        errno.EMFILE: "too many files are open: ulimit -n",
    }
    place = f" at {error.filename}" if error.filename else ""
    return RunyardError(
        f"the operating system refused something{place}",
        said=error.strerror or error,
        mend=mends.get(error.errno or 0, "the same command with --debug shows where"),
    )
