"""A program begins, in a process group of its own."""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Not the program's fault, and the next one would fare no better.
_OF_THE_MACHINE = (errno.EAGAIN, errno.ENOMEM, errno.ENFILE, errno.EMFILE)


class NotStarted(Exception):
    """The program cannot be started, and why; 127 or 126, as a shell has it."""

    def __init__(self, why: str, exit_code: int) -> None:
        super().__init__(why)
        self.exit_code = exit_code


def launch(
    words: Sequence[str], environ: Mapping[str, str], folder: str | None, output: int
) -> int:
    """Start a program; its process, which leads a group of its own. To be waited for by number."""
    # `subprocess` does not copy the agent's memory to throw it away (vfork), where a fork would:
    # a quarter of the time. Imported here, when there is something to run.
    import subprocess

    try:
        process = subprocess.Popen(
            list(words),
            env=dict(environ),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno in _OF_THE_MACHINE:
            raise
        why = error.strerror if isinstance(error, OSError) else str(error)
        missing = isinstance(error, FileNotFoundError)
        where = f" in {folder}" if folder is not None and not os.path.isdir(folder) else ""  # noqa: PTH112
        raise NotStarted(
            f"cannot start {words[0]!r}{where}: {why}", 127 if missing else 126
        ) from error
    process.returncode = 0  # It is waited for by others; Popen must not warn about it.
    return process.pid
