"""A program begins: in a process group of its own, known to the keeper before its first line."""

from __future__ import annotations

import contextlib
import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# Python ignores or handles these, and so do we; a program expects them as they are in a shell.
_RESTORED = (
    signal.SIGPIPE,
    signal.SIGXFSZ,
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGUSR2,
    signal.SIGCHLD,
)
_EVERY = signal.valid_signals()


def launch(
    words: Sequence[str],
    environ: Mapping[str, str],
    folder: str | None,
    output: int,
    before: Callable[[int], None],
) -> int:
    """Fork and execute; the process, which leads its own group.

    `before` is called in the new process with its number. A program that cannot be started says
    why on its output and ends with 127 or 126, as in a shell. Only ever from a single thread.
    """
    masked = signal.pthread_sigmask(signal.SIG_BLOCK, _EVERY)
    try:
        pid = os.fork()
        if not pid:
            _become(words, environ, folder, output, before)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, masked)
    with contextlib.suppress(OSError):
        os.setpgid(pid, pid)  # Whoever of the two comes first.
    return pid


def _become(
    words: Sequence[str],
    environ: Mapping[str, str],
    folder: str | None,
    output: int,
    before: Callable[[int], None],
) -> None:
    code = 126
    try:
        signal.set_wakeup_fd(-1)
        os.setpgid(0, 0)
        before(os.getpid())
        for number in _RESTORED:
            signal.signal(number, signal.SIG_DFL)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        if folder is not None:
            os.chdir(folder)
        os.execvpe(words[0], list(words), dict(environ))  # noqa: S606
    except FileNotFoundError as error:
        code = 127
        _say(words, error)
    except Exception as error:
        _say(words, error)
    finally:
        os._exit(code)


def _say(words: Sequence[str], error: Exception) -> None:
    why = str(error)
    if isinstance(error, OSError):
        where = f" ({error.filename})" if error.filename and error.filename != words[0] else ""
        why = f"{error.strerror}{where}"
    with contextlib.suppress(OSError):
        os.write(2, f"runyard: cannot start {words[0]!r}: {why}\n".encode(errors="replace"))
