"""Record what NVIDIA's driver answers to the questions that runyard asks, for tests without a GPU.

    python3 scripts/record_nvml.py recording.json

Runs on any Linux machine with an NVIDIA GPU that nobody else uses, in about four minutes. It needs
Python 3.10 and no package: NVML is asked by `runyard.node.devices.nvml`, and the programs that
share the GPU call CUDA's driver directly (`gpu_program.py`). Where PyTorch is there, one scene
compares the driver's figures with PyTorch's; where `nvidia-cuda-mps-control` is there, the scenes
with MPS are recorded too. What cannot be had is recorded as its reason.

Each scene has `programs` (which processes there are and what each holds), `calls` (every call of
the library with its arguments, answers and return code), `seen` (what runyard's sampler made of
them there and then) and `card`. A `pack` has the looks by which `runyard.node.devices.packing`
decided how many programs share the GPU, and what it decided. `tests/node/recorded_driver.py` plays
it back.
"""

from __future__ import annotations

import contextlib
import ctypes
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(_ROOT / "src"))

from runyard.node.attempt.keeper import Keeper, start_keeper  # noqa: E402
from runyard.node.devices import nvml, sampler  # noqa: E402
from runyard.node.devices.mps import start_mps  # noqa: E402
from runyard.node.devices.packing import Pack, Reading  # noqa: E402

_GIB = 1 << 30
# The driver's figure of how busy a GPU is covers up to a second.
_BUSY_SECONDS = 2.5
_PACK_SECONDS = 100.0
_MOST_TOGETHER = 8


class Recorder:
    """NVML's library, with every call noted."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self.calls: list[dict[str, Any]] = []

    def __getattr__(self, name: str) -> Any:
        try:
            function = getattr(self._library, name)
        except AttributeError:
            self.calls.append({"function": name, "code": None})
            raise

        def call(*arguments: Any) -> Any:
            code = function(*arguments)
            told = [_plain(item, arguments[:place]) for place, item in enumerate(arguments)]
            self.calls.append({"function": name, "code": code, "arguments": told})
            return code

        return function if name == "nvmlErrorString" else call


def _plain(item: Any, before: Sequence[Any]) -> Any:
    """An argument after the call, as JSON has it."""
    item = getattr(item, "_obj", item)  # What `byref` points to.
    if isinstance(item, ctypes.Structure):
        return {name: getattr(item, name) for name, *_ in item._fields_}
    if isinstance(item, ctypes.Array):
        if issubclass(item._type_, ctypes.Structure):
            count = min(before[-1]._obj.value, len(item))
            return [_plain(item[place], ()) for place in range(count)]
        return bytes(item).split(b"\0")[0].decode(errors="replace")
    if isinstance(item, ctypes.c_void_p):
        return "device"
    if isinstance(item, bytes):
        return item.decode(errors="replace")
    return getattr(item, "value", item)


class Program:
    """A process of `gpu_program.py`."""

    def __init__(self, folder: Path, hold: int, *options: str, more: Mapping[str, str]) -> None:
        self.marks_file = folder / f"marks-{os.urandom(4).hex()}"
        self.errors = folder / f"{self.marks_file.name}-errors"
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                [
                    sys.executable, str(Path(__file__).with_name("gpu_program.py")),
                    "--hold", str(hold), "--marks", str(self.marks_file), *options,
                ],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
                env={**os.environ, **more},
            )  # fmt: skip
        self.ready = self._hear()

    def hold(self, size: int) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{size}\n")
        self.process.stdin.flush()
        self.ready = self._hear()

    def _hear(self) -> dict[str, int]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the program ended: {self.errors.read_text()[-2000:]}")
        told: dict[str, int] = json.loads(line)
        return told

    def marks(self) -> list[tuple[float, int]]:
        """Time and steps, five times a second."""
        lines = self.marks_file.read_text().splitlines(keepends=True)
        return [(at, steps) for at, steps in map(json.loads, lines)]

    def about(self) -> dict[str, Any]:
        """Its processes, as the kernel numbers them here and in the namespaces above."""
        status = Path(f"/proc/{self.ready['pid']}/status").read_text().splitlines()
        outer = [line.split()[1:] for line in status if line.startswith("NSpid")]
        return {"started": self.process.pid, **self.ready, "numbers": outer[0] if outer else []}

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextlib.contextmanager
def running(folder: Path, more: Mapping[str, str]) -> Iterator[Callable[..., Program]]:
    """A function that starts programs, which have ended afterwards."""
    started: list[Program] = []

    def start(hold: int, *options: str) -> Program:
        started.append(Program(folder, hold, *options, more=more))
        return started[-1]

    try:
        yield start
    finally:
        for program in started:
            program.end()


def look(recorder: Recorder, programs: Sequence[Program]) -> dict[str, Any]:
    """One look at everything, by the code that looks in jobs."""
    recorder.calls = []
    watching = sampler.Sampler(often=True)
    for number, program in enumerate(programs):
        watching.hear(
            {"began": str(number), "pid": program.process.pid, "folder": "/nonexistent", "run": "r"}
        )
    seen = watching.look()
    driver = nvml.Driver()
    uuids = driver.uuids()
    return {
        "programs": [program.about() for program in programs],
        "seen": seen,
        "card": sampler._card(driver, uuids[0]),
        "exclusive": [uuid for uuid in uuids if driver.refuses_sharing(driver.device(uuid))],
        "calls": list(recorder.calls),
    }


def scenes(recorder: Recorder, folder: Path, more: Mapping[str, str]) -> dict[str, Any]:
    """One program, one below a wrapper, one that grows and shrinks, two that share."""
    recorded: dict[str, Any] = {}

    def note(name: str, programs: Sequence[Program]) -> None:
        time.sleep(_BUSY_SECONDS)
        recorded[name] = look(recorder, programs)
        print(f"{name}: {recorded[name]['seen']['attempts']}", flush=True)

    note("idle", [])
    with running(folder, more) as start:
        first = start(2 * _GIB)
        note("one", [first])
        for size in (6, 1):
            first.hold(size * _GIB)
            note(f"one with {size} GiB", [first])
    with running(folder, more) as start:
        note("below a wrapper", [start(2 * _GIB, "--child")])
    with running(folder, more) as start:
        pair = [start(2 * _GIB), start(5 * _GIB, "--child", "--kind", "large")]
        note("two", pair)
        # The same two, of which one is somebody else's.
        note("one beside a stranger", pair[:1])
    note("idle again", [])
    return recorded


def torch_scene(recorder: Recorder, folder: Path) -> dict[str, Any]:
    with running(folder, {}) as start:
        program = start(2 * _GIB, "--torch")
        time.sleep(_BUSY_SECONDS)
        return look(recorder, [program])


def pack(folder: Path, kind: str, more: Mapping[str, str]) -> dict[str, Any]:
    """As an agent packs a GPU: start as many as are wanted, look every second, until settled."""
    said: list[str] = []
    packing = Pack(_MOST_TOGETHER, said.append)
    looks: list[dict[str, Any]] = []
    watching = sampler.Sampler(often=True)
    with running(folder, more) as start:
        programs: list[Program] = []
        end = time.monotonic() + _PACK_SECONDS
        while not packing.is_settled and time.monotonic() < end:
            while len(programs) < packing.wanted:
                programs.append(start(_GIB, "--kind", kind))
                about = {"pid": programs[-1].process.pid, "folder": "/nonexistent", "run": "r"}
                watching.hear({"began": str(len(programs) - 1), **about})
            time.sleep(1)
            seen = watching.look()
            [card] = list(seen["gpus"].values())[:1]
            held = {token: told.get("vram_peak", 0) for token, told in seen["attempts"].items()}
            readings = [
                [str(place), len(marks), marks[-1][0], held[str(place)], marks[-1][1]]
                for place, program in enumerate(programs)
                if (marks := program.marks())
            ]
            others = max(0, card["used"] - sum(held.values()))
            now = time.time()
            packing.look(now, [Reading(*reading) for reading in readings], (card["total"], others))
            looks.append(
                {
                    "now": now, "readings": readings, "total": card["total"], "others": others,
                    "use": card["use"], "wanted": packing.wanted,
                }
            )  # fmt: skip
    print(f"{kind}: {said}", flush=True)
    return {
        "looks": looks, "said": said, "wanted": packing.wanted,
        "work": {str(count): work for count, work in packing.work.items()},
    }  # fmt: skip


@contextlib.contextmanager
def mps() -> Iterator[dict[str, str]]:
    """runyard's own daemon; the variables by which programs find it."""
    with tempfile.TemporaryDirectory(prefix="runyard-record-") as empty:
        keeper: Keeper = start_keeper(empty, lambda _spool: None)
        try:
            daemon = start_mps((nvml.Driver().uuids()[0],), os.environ, keeper)
            try:
                yield daemon.variables
            finally:
                daemon.end(keeper)
        finally:
            keeper.dismiss()
            with contextlib.suppress(ChildProcessError):
                os.waitpid(keeper.pid, 0)


def machine(library: Any) -> dict[str, Any]:
    version = ctypes.create_string_buffer(96)
    library.nvmlSystemGetDriverVersion(version, len(version))
    return {
        "recorded": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "driver": version.value.decode(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "cpus": len(os.sched_getaffinity(0)),
    }


def attempt(name: str, action: Callable[[], Any]) -> Any:
    """What came of it, or why it could not be had: the rest is still worth recording."""
    try:
        return action()
    except Exception as error:
        print(f"{name}: {error!r}", flush=True)
        return {"error": repr(error)}


def main() -> int:
    target = Path(sys.argv[1])
    library = nvml._load()
    recorder = Recorder(library)
    nvml._load = lambda: recorder
    nvml.Driver()

    with tempfile.TemporaryDirectory(prefix="runyard-record-") as name:
        folder = Path(name)
        recording: dict[str, Any] = {"machine": machine(library)}

        def save(part: str, action: Callable[[], Any]) -> None:
            recording[part] = attempt(part, action)
            target.write_text(json.dumps(recording, indent=1) + "\n")

        def with_mps() -> dict[str, Any]:
            with mps() as more:
                return {
                    "scenes": attempt("scenes", lambda: scenes(recorder, folder, more)),
                    "pack": attempt("pack", lambda: pack(folder, "small", more)),
                }

        save("scenes", lambda: scenes(recorder, folder, {}))
        save("torch", lambda: torch_scene(recorder, folder))
        save("pack small", lambda: pack(folder, "small", {}))
        save("pack large", lambda: pack(folder, "large", {}))
        save("mps", with_mps)
    return 0


if __name__ == "__main__":
    sys.exit(main())
