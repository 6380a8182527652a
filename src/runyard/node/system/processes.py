"""Processes of ours, told from others by more than a number: numbers are given out again."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

# In the environment of every attempt: finds what left its process group.
MARK = "RUNYARD_ATTEMPT_TOKEN"
# In that of one rank's program: on its node are other ranks of the same attempt.
RANK_MARK = "RUNYARD_RANK_TOKEN"
_LOOK_EVERY = 0.02
# Clients up to 0.19 may run as `python -m wandb service`.
_CLIENT = {b"wandb", b"service"}
# When its program is gone, a client ends by itself: newer ones at once, older ones when they have
# sent the rest, for which they may wait for a server that is being started again.
CLIENT_SECONDS = 45.0
# Runtimes of containers, and what starts a step of a job, hand every signal on, also to a program
# that would die of it; the program itself is found by its mark.
_RUNTIMES = (b"apptainer", b"singularity", b"starter", b"podman", b"conmon", b"crun")
MOST_HANDLES = 4096
# Not the program's fault, and the next one would fare no better.
_OF_THE_MACHINE = (errno.EAGAIN, errno.ENOMEM, errno.ENFILE, errno.EMFILE)
_IDENTITY: dict[str, object] = {}


def start_time(pid: int) -> str | None:
    """When a process began, in the kernel's own words; None if there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None if os.path.exists("/proc/self") else _start_time_by_ps(pid)
    # A zombie has ended; only its number is still taken.
    return None if fields[0] in (b"Z", b"X") else fields[19].decode()


def age_of(pid: int) -> float:
    """For how many seconds a process has been there; 0 where the kernel does not say."""
    began = start_time(pid)
    with contextlib.suppress(OSError, ValueError, TypeError), open("/proc/uptime") as file:
        ticks = float(began or "")
        return max(0.0, float(file.read().split()[0]) - ticks / os.sysconf("SC_CLK_TCK"))
    return 0.0


def _start_time_by_ps(pid: int) -> str | None:
    import subprocess

    shown = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return shown.stdout.strip() or None


def boot_id() -> str:
    """Changes with every start of the machine; process numbers of another boot mean nothing."""
    with contextlib.suppress(OSError), open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()
    return ""


def identity() -> dict[str, object]:
    """Who we are, for a record that may outlive us."""
    if not _IDENTITY or _IDENTITY["pid"] != os.getpid():
        _IDENTITY.update(boot=boot_id(), pid=os.getpid(), pid_began=start_time(os.getpid()))
    return dict(_IDENTITY)


def group_lives(group: int) -> bool:
    """Whether any process of a group runs."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return False  # The number is somebody else's now.
    return any(_is_in(pid, group) for pid in _pids()) if os.path.exists("/proc/self") else True


def marked(tokens: Iterable[str], mark: str = MARK, *, ranks: bool = True) -> list[int]:
    """Live processes that carry one of these marks, wherever they went; or those without a rank."""
    marks = [f"{mark}={token}".encode() for token in tokens]
    pids = []
    for pid in _pids():
        with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
            environ = file.read()
            if not ranks and RANK_MARK.encode() + b"=" in environ:
                continue
            words = set(environ.split(b"\0"))
            if any(mark_bytes in words for mark_bytes in marks) and start_time(pid) is not None:
                pids.append(pid)
    return pids


def has_ranks(token: str) -> bool:
    """Whether ranks of an attempt run on this node."""
    return len(marked([token])) > len(marked([token], ranks=False))


def send_to_listeners(
    group: int, token: str, number: int, notified: set[int], mark: str = MARK
) -> None:
    """Send a signal to those processes of an attempt that have a handler for it.

    To the others it would be the end. `told` are those who got it before.
    """
    of_group = [pid for pid in _pids() if _is_in(pid, group)]
    for pid in {*of_group, *marked([token], mark)} - notified:
        if has_handler(pid, number) and not _is_runtime(pid):
            notified.add(pid)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)


def listens(group: int, token: str, number: int) -> bool:
    """Whether any process of an attempt has a handler for a signal."""
    of_group = [pid for pid in _pids() if _is_in(pid, group)]
    return any(
        has_handler(pid, number) and not is_client(pid) and not _is_runtime(pid)
        for pid in {*of_group, *marked([token])}
    )


def has_handler(pid: int, number: int) -> bool:
    """Whether a process has a handler for a signal."""
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/status") as file:
        for line in file:
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def _is_runtime(pid: int) -> bool:
    from runyard.schedulers.inside import STEP_PROGRAMS  # Not part of an agent's start.

    with contextlib.suppress(OSError), open(f"/proc/{pid}/comm", "rb") as file:
        name = file.read().strip().lower()
        return name.startswith((*_RUNTIMES, *map(str.encode, STEP_PROGRAMS)))
    return False


def is_launcher(pid: int) -> bool:
    """Whether it only starts the program and hands signals on: a container's runtime, the
    scheduler's, or a process of ours."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        return b"runyard.node." in file.read() or _is_runtime(pid)
    return False


def members(groups: Iterable[int], tokens: Iterable[str], mark: str = MARK) -> list[int]:
    """Every process of attempts: of their groups, or marked. Those of ranks are their worker's."""
    pids = {*marked(tokens, mark, ranks=mark == RANK_MARK)}
    for group in groups:
        pids |= {pid for pid in _pids() if _is_in(pid, group)}
    return sorted(pids)


def is_client(pid: int) -> bool:
    """Whether it is the wandb client's own process, which sends what the program has logged."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        words = file.read().split(b"\0")
        return b"wandb-core" in words[0] or b"wandb-service" in words[0] or set(words) >= _CLIENT
    return False


def send(group: int, number: int) -> bool:
    """Send a signal to a group; says whether it has any process."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def end_groups(groups: dict[int, str | None], tokens: Iterable[str], grace: float) -> None:
    """End these groups, and whatever carries these marks: TERM, after the grace KILL. Waits.

    `groups` holds each leader's start time; a number that has another start time now is not ours.
    """
    ours = [group for group, began in groups.items() if _is_still(group, began)]
    tokens = list(tokens)
    _end_programs(ours, tokens, grace)
    end = time.monotonic() + CLIENT_SECONDS
    while any(is_client(pid) for pid in marked(tokens)) and time.monotonic() < end:
        time.sleep(_LOOK_EVERY)
    for pid in marked(tokens):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _end_programs(ours: list[int], tokens: list[str], grace: float) -> None:
    def others() -> list[int]:
        return [pid for pid in marked(tokens) if not is_client(pid)]

    for number, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, grace)):
        for group in ours:
            send(group, number)
        for pid in others():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        end = time.monotonic() + seconds
        while any(group_lives(group) for group in ours) or others():
            if time.monotonic() >= end:
                break
            time.sleep(_LOOK_EVERY)
        else:
            return


def _is_still(group: int, began: str | None) -> bool:
    now = start_time(group)
    # A leader that is gone left a group whose number nobody else gets while it has members.
    return group_lives(group) and (now is None or began is None or now == began)


def _is_in(pid: int, group: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return False
    return fields[0] not in (b"Z", b"X") and int(fields[2]) == group


def _pids() -> Iterator[int]:
    try:
        names = os.listdir("/proc")
    except OSError:
        return
    yield from (int(name) for name in names if name.isdecimal())


def fork_twin(work: Callable[[], None], handles: Iterable[int]) -> int:
    """Fork; the twin does the work and ends. Of what is open here it keeps these handles alone."""
    pid = os.fork()
    if pid:
        return pid
    try:
        _leave_the_agents_side(sorted(handles))
        work()
    finally:
        os._exit(0)


def _leave_the_agents_side(handles: list[int]) -> None:
    os.setsid()  # A signal to the agent's group, or Ctrl-C, is not for us.
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        # Not ignored, which whatever we start would inherit.
        signal.signal(number, lambda *_: None)
    nothing = os.open(os.devnull, os.O_RDWR)
    for handle in (0, 1, 2):  # Whoever reads the agent's output is not to wait for us.
        os.dup2(nothing, handle)
    # A connection that we held open would make the server believe that the agent lives.
    first = 3
    for handle in [*handles, MOST_HANDLES]:
        os.closerange(first, handle)
        first = handle + 1


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
    pass_handles: Sequence[int] = (),
) -> int:
    """Start a program; its process, which leads a group of its own. To be waited for by number.

    `errors`: where its stderr goes, if not to its output. `on_terminal`: it stays in our session
    and has our input; called in its process, to enter its group and take the terminal.
    `pass_handles`: what it has open besides, under the same numbers.
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
            pass_fds=tuple(pass_handles),
        )
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno in _OF_THE_MACHINE:
            raise
        why = error.strerror if isinstance(error, OSError) else str(error)
        missing = isinstance(error, FileNotFoundError)
        where = f" in {folder}" if folder is not None and not os.path.isdir(folder) else ""
        raise NotStarted(
            f"cannot start {words[0]!r}{where}: {why}", 127 if missing else 126
        ) from error
    process.returncode = 0  # It is waited for by others; Popen must not warn about it.
    return process.pid
