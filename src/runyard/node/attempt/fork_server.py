"""The warm parent: it imports modules once, and forks a process for each trial, which becomes the
trial's program.

    python fork_server.py SOCKET PADDING

It runs in the Python of the trial's command, where runyard need not be installed, so it imports
nothing of runyard. The agent asks through the socket, each message a length and JSON: first for
the modules, then for one program at a time, with its output and a pipe. A program's process is
made by two forks; the one between them ends at once, and the kernel gives the process to the
agent, which waits for it as for any child. It begins when the agent writes to the pipe, and ends
if the pipe is closed instead: so a program never begins twice, whoever dies meanwhile.
"""

from __future__ import annotations

import array
import contextlib
import gc
import importlib
import json
import os
import socket
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

# The agent's word that its child may become the program.
GO = b"g"
_LENGTH = struct.Struct("!Q")
# Threads that survive a fork unharmed: jemalloc (pyarrow's) starts its own again in the child.
_HARMLESS_THREADS = ("jemalloc_bg_thd",)
# Libraries import these on first use, so nearly every program does. A release may lack some.
_ON_FIRST_USE = {
    # By the first optimizer; it takes two thirds of the time that torch itself takes.
    "torch": ("torch._dynamo",),
    # By `wandb.init` and the first row; a third of the time of wandb itself.
    "wandb": (
        "wandb.apis.public",
        "requests",
        "opentelemetry.sdk.metrics",
        "opentelemetry.exporter.otlp.proto.http.metric_exporter",
        "yaml",
    ),
}
_BAD_FORK = 3
# Where `/proc/self/stat` has the addresses of the words and of the environment, behind the name.
_ARGUMENTS, _ENVIRONMENT = slice(45, 47), slice(47, 49)


class NoPreload(Exception):
    """The modules cannot be held for other processes, and why."""


def send(control: socket.socket, message: Mapping[str, Any], handles: Sequence[int] = ()) -> None:
    content = json.dumps(message).encode()
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", handles))] if handles else []
    control.sendmsg([_LENGTH.pack(len(content))], rights)
    control.sendall(content)


def receive(control: socket.socket, most_handles: int = 0) -> tuple[dict[str, Any], list[int]]:
    """The next message and what was sent with it; EOFError where the other side is gone."""
    handles = array.array("i")
    size = socket.CMSG_SPACE(most_handles * handles.itemsize) if most_handles else 0
    begin, ancillary, _, _ = control.recvmsg(_LENGTH.size, size)
    for _level, _kind, data in ancillary:
        handles.frombytes(data[: len(data) - len(data) % handles.itemsize])
    begin += _read(control, _LENGTH.size - len(begin)) if begin else b""
    if not begin:
        raise EOFError
    return json.loads(_read(control, _LENGTH.unpack(begin)[0])), list(handles)


def _read(control: socket.socket, size: int) -> bytes:
    content = b""
    while len(content) < size:
        piece = control.recv(size - len(content))
        if not piece:
            raise EOFError
        content += piece
    return content


def preload(modules: Sequence[str], folder: str) -> None:
    """Import them, as a program would whose script is in this folder."""
    if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
        sys.path[0] = folder  # In place of this file's own.
    for name in modules:
        try:
            importlib.import_module(name)
        except BaseException as error:
            why = str(error).strip().splitlines() or [""]
            raise NoPreload(f"import {name}: {type(error).__name__}: {why[0]}") from error
    for library, later in _ON_FIRST_USE.items():
        for name in later if library in sys.modules else ():
            with contextlib.suppress(Exception):
                importlib.import_module(name)
    _refuse_threads()
    _refuse_gpu()
    gc.collect()
    gc.freeze()  # What is here is never garbage, and a collection would copy its pages.


def _refuse_threads() -> None:
    """A fork copies one thread only, and the locks of the others as they were."""
    import threading

    ours = [thread.name for thread in threading.enumerate() if thread.name != "MainThread"]
    if ours:
        raise NoPreload(f"the import started a thread ({ours[0]}), which a fork would lose")
    if _count_threads() == 0:
        return
    # OpenBLAS (numpy's) ends its threads before a fork and starts them when they are needed.
    _try_fork()
    if _count_threads():
        raise NoPreload("the import started a thread outside of Python, which a fork would lose")


def _count_threads() -> int:
    """Threads beside this one, which may do harm."""
    count = 0
    for thread in os.listdir("/proc/self/task"):
        if int(thread) != os.getpid():
            with open(f"/proc/self/task/{thread}/comm") as file:
                count += file.read().strip() not in _HARMLESS_THREADS
    return count


def _refuse_gpu() -> None:
    """CUDA does not work in a process that was forked after its start."""
    torch = sys.modules.get("torch")
    if torch is not None and (torch.cuda.is_initialized() or _try_fork() == _BAD_FORK):
        raise NoPreload("the import started CUDA, which does not survive a fork")
    for handle in os.listdir("/proc/self/fd"):
        try:
            path = os.readlink(f"/proc/self/fd/{handle}")
        except OSError:
            continue  # That of the listing itself.
        if path.startswith(("/dev/nvidia", "/dev/kfd")):
            raise NoPreload(f"the import opened {path}: the GPU's driver does not survive a fork")


def _try_fork() -> int:
    """Fork once for nothing; what the child found."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    try:
        os._exit(_BAD_FORK if _is_bad_fork() else 0)
    finally:
        os._exit(1)


def _is_bad_fork() -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and bool(getattr(torch.cuda, "_is_in_bad_fork", bool)())


def serve(control: socket.socket) -> dict[str, Any]:
    """Fork whenever the agent asks, until it is gone. In a child: what its program is."""
    try:
        while True:
            request, handles = receive(control, 2)
            answer = _fork(request, handles, control)
            if answer is None:
                return request
            for handle in handles:
                os.close(handle)
            send(control, answer)
    except (EOFError, OSError):
        os._exit(0)


def _fork(
    request: dict[str, Any], handles: list[int], control: socket.socket
) -> dict[str, Any] | None:
    """What to answer; None in the child that is to become the program."""
    reader, tell = os.pipe()
    try:
        middle = os.fork()
    except OSError as error:
        return {"error": str(error)}
    finally:
        os.set_inheritable(tell, False)
    if not middle:
        try:
            if os.fork():
                os._exit(0)
            os.close(reader)
            control.close()
            _settle(request, *handles)
            os.write(tell, str(os.getpid()).encode())
            os.close(tell)
            if os.read(handles[1], 1) != GO:
                os._exit(0)
            os.close(handles[1])
            return None
        except BaseException as error:
            os.write(tell, f"{type(error).__name__}: {error}".encode(errors="replace"))
            os._exit(1)
    os.close(tell)
    with os.fdopen(reader, "rb") as words:
        text = words.read().decode()
    # From here on the process is the agent's child, which the one between them no longer is.
    os.waitpid(middle, 0)
    return {"pid": int(text)} if text.isdecimal() else {"error": text or "no process could be made"}


def _settle(request: dict[str, Any], output: int, _go: int) -> None:
    """Have what a process has that the agent starts itself."""
    if _is_bad_fork():
        raise NoPreload("CUDA was started in the warm parent")
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for target, source in enumerate((nothing, output, output)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(output)
    os.sched_setaffinity(0, request["cpus"])
    environ = request["environ"]
    _show_as(request["mark"], environ, request["words"])
    # Python itself sets it where it finds the locale C.
    language = {name: os.environ[name] for name in ("LC_CTYPE",) if name in os.environ}
    os.environ.clear()
    os.environ.update({**environ, **language})
    os.chdir(request["folder"])
    _draw_anew()


def _show_as(mark: str, environ: Mapping[str, str], words: Sequence[str]) -> None:
    """Change what the kernel shows of us: the variable by which runyard finds us, and the command.

    Both are read from the memory that the process began with, so they are written there. `PADDING`
    made room for the command; what does not fit is cut off.
    """
    with open("/proc/self/stat", "rb") as file:
        fields = list(map(int, file.read().rpartition(b")")[2].split()[1:]))
    fields.insert(0, 0)  # The state, which is a letter.
    memory = os.open("/proc/self/mem", os.O_RDWR)
    try:
        begin, end = fields[_ENVIRONMENT]
        variables = os.pread(memory, end - begin, begin)
        place = variables.index(f"{mark}={os.environ[mark]}\0".encode()) + len(mark) + 1
        os.pwrite(memory, environ[mark].encode(), begin + place)
        begin, end = fields[_ARGUMENTS]
        command = b"\0".join(map(os.fsencode, words))[: end - begin - 1]
        os.pwrite(memory, command.ljust(end - begin, b"\0"), begin)
    finally:
        os.close(memory)


def _draw_anew() -> None:
    """Random numbers as a new process has them. `random` sees to itself; the seed of hashes stays
    that of the parent."""
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.default_generator.seed()
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing is not None:
        multiprocessing.current_process().authkey = os.urandom(32)


def become(request: dict[str, Any]) -> None:
    """Run the program as `python SCRIPT` and `python -m MODULE` do."""
    import builtins
    import types

    name, sys.orig_argv = request["name"], request["words"]
    sys.argv = ["-m" if request["is_module"] else name, *request["arguments"]]
    sys.modules["__main__"] = main = types.ModuleType("__main__")
    # What this version of Python gives to a program's own module, as it gave it to ours.
    ours = {"__builtins__": builtins, "__annotations__": {}, "__cached__": None}
    vars(main).update({name: value for name, value in ours.items() if name in globals()})
    importlib.invalidate_caches()
    try:
        if request["is_module"]:
            import runpy

            runpy._run_module_as_main(name)  # type: ignore[attr-defined]
        else:
            _run_script(name, vars(main))
    except SystemExit:
        raise
    except BaseException:
        _hide_ourselves()
        raise


def _run_script(name: str, names: dict[str, Any]) -> None:
    from importlib.machinery import SourceFileLoader

    path = name if os.path.isabs(name) else f"{os.getcwd()}/{name}"
    names.update(__file__=path, __loader__=SourceFileLoader("__main__", path))
    with open(path, "rb") as file:
        source = file.read()
    exec(compile(source, path, "exec", dont_inherit=True), names)  # noqa: S102 - The program.


def _hide_ourselves() -> None:
    """Leave this file out of the traceback that Python is about to show."""
    show = sys.excepthook

    def show_program(kind: Any, error: BaseException, trace: Any) -> None:
        while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        show(kind, error.with_traceback(trace), trace)

    sys.excepthook = show_program


def _main() -> dict[str, Any]:
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    request, _ = receive(control)
    try:
        preload(request["modules"], request["path"])
    except NoPreload as error:
        send(control, {"error": str(error)})
        os._exit(1)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    send(control, {"ready": True})
    return serve(control)


if __name__ == "__main__":
    become(_main())
