"""A program begins, in a process group of its own."""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# Not the program's fault, and the next one would fare no better.
_OF_THE_MACHINE = (errno.EAGAIN, errno.ENOMEM, errno.ENFILE, errno.EMFILE)


class NotStarted(Exception):
    """The program cannot be started, and why; 127 or 126, as a shell has it."""

    def __init__(self, why: str, exit_code: int) -> None:
        super().__init__(why)
        self.exit_code = exit_code


def launch(
    words: Sequence[str],
    environ: Mapping[str, str],
    folder: str | None,
    output: int,
    *,
    errors: int | None = None,
    on_terminal: Callable[[], None] | None = None,
) -> int:
    """Start a program; its process, which leads a group of its own. To be waited for by number.

    `errors`: where its stderr goes, if not to its output. `on_terminal`: it stays in our session
    and has our input; called in its process, to enter its group and take the terminal.
    """
    # `subprocess` does not copy the agent's memory to throw it away (vfork), where a fork would:
    # a quarter of the time. Imported here, when there is something to run.
    import subprocess

    try:
        process = subprocess.Popen(
            list(words),
            env=dict(environ),
            cwd=folder,
            stdin=subprocess.DEVNULL if on_terminal is None else None,
            stdout=output,
            stderr=output if errors is None else errors,
            start_new_session=on_terminal is None,
            preexec_fn=on_terminal,
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
