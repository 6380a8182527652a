"""A process beside the agent that looks at its programs: memory, CPU, I/O, GPUs, rows logged.

One for all slots of an agent. Lines of JSON come in (what began, what ended) and go out (what was
seen). It is a process of its own because a driver or a file system in trouble may not answer: then
nothing is measured, and nothing else suffers.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time

from runyard.node.attempt.lost_teardown import LOOK_EVERY, LostTeardowns
from runyard.node.devices.row_rate import RowCount
from runyard.node.system import process_trees
from runyard.schedulers.inside import STEP_PROGRAMS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from runyard.node.devices.nvml import Driver

_EVERY = 2.0
_AT_LEAST_EVERY = 5.0
_SOON = 0.3


class _Watched:
    """One program, and what was seen of it."""

    def __init__(self, attempt: dict[str, Any], *, often: bool = False) -> None:
        self.pid = int(attempt["pid"])
        self.gpus: list[str] = attempt.get("gpus") or []
        self.rows = RowCount(attempt["folder"], attempt["run"])
        self.memory_peak = self.vram_peak = self.vram_total = self.memory = 0
        self.vram: dict[str, int] = {}
        self.cpu_seconds = 0.0
        self.read = self.written = 0
        self.gpu: str | None = None
        self._busy = self._looks = 0.0
        self.lost_teardown = False
        self.pss = process_trees.Pss(process_trees.OFTEN) if often else process_trees.Pss()

    def look(self, pids: list[int], gpus: dict[str, Any], *, exact: bool) -> None:
        usage = process_trees.add_up(pids, self.pss if exact else None)
        self.memory_peak = max(self.memory_peak, usage.memory)
        self.memory = usage.resident
        self.cpu_seconds = max(self.cpu_seconds, usage.cpu_seconds)
        self.read, self.written = max(self.read, usage.read), max(self.written, usage.written)
        self._look_at_gpus(set(pids), gpus)
        self.rows.look()

    def _look_at_gpus(self, pids: set[int], gpus: dict[str, Any]) -> None:
        held = {
            name: sum(size for pid, size in usage["processes"].items() if pid in pids)
            for name, usage in gpus.items()
            if pids & usage["processes"].keys() or name in self.gpus
        }
        self.vram = held
        if not held:
            return
        self.vram_peak = max(self.vram_peak, sum(held.values()))
        self.vram_total = max(self.vram_total, sum(gpus[name]["total"] for name in held))
        self.gpu = ",".join(sorted(held))
        used = [gpus[name]["use"] for name in held if gpus[name]["use"] is not None]
        if used:
            self._looks += 1
            self._busy += sum(used) / len(used)

    def usage(self) -> dict[str, Any]:
        usage: dict[str, Any] = {
            "memory_peak": self.memory_peak,
            "memory": self.memory,
            "vram": self.vram,
            "cpu_seconds": round(self.cpu_seconds, 2),
            "read_bytes": self.read,
            "written_bytes": self.written,
            "rows": self.rows.count,
            "steps": self.rows.steps,
            "row_at": self.rows.last_at,
            "lost_teardown": self.lost_teardown,
        }
        if self.vram_peak:
            usage["vram_peak"] = self.vram_peak
            usage["vram_total"] = self.vram_total
        if self.gpu is not None:
            usage["gpu"] = self.gpu
        if self._looks:
            usage["gpu_use"] = round(self._busy / self._looks, 3)
        rate = self.rows.rate()
        if rate is not None:
            usage["steps_per_second"] = float(f"{rate:.4g}")
        return usage


class _Gpus:
    """The GPUs that programs are tied to, or else all; nothing where there is no driver."""

    def __init__(self) -> None:
        self._driver: Driver | None = None
        self._devices: dict[str, Any] = {}
        self._is_tried = False

    def look(self, names: set[str]) -> dict[str, Any]:
        driver = self._open()
        if driver is None:
            return {}
        for name in names or set(driver.uuids() if not self._devices else ()):
            if name not in self._devices:
                self._devices[name] = driver.device(name)
        return {
            name: self._of(driver, device)
            for name, device in self._devices.items()
            if device is not None
        }

    def _of(self, driver: Driver, device: Any) -> dict[str, Any]:
        total, used = driver.memory(device) or (0, 0)
        return {
            "total": total,
            "used": used,
            "use": driver.use(device),
            "processes": driver.processes(device),
        }

    def _open(self) -> Driver | None:
        if not self._is_tried:
            self._is_tried = True
            from runyard.node.devices.nvml import Driver, NoDriver

            with contextlib.suppress(NoDriver):
                self._driver = Driver()
        return self._driver


class Sampler:
    """`often`: the programs run only to be looked at."""

    def __init__(self, *, often: bool = False) -> None:
        self._often = often
        self._watched: dict[str, _Watched] = {}
        self._gpus = _Gpus()
        self._lost_teardowns = LostTeardowns()
        self._clients_due = time.monotonic() + LOOK_EVERY

    def hear(self, message: dict[str, Any]) -> None:
        if "ended" in message:
            self._watched.pop(message["ended"], None)
        else:
            self._watched[message["began"]] = _Watched(message, often=self._often)

    def look(self) -> dict[str, Any]:
        """Look once at everything."""
        names = {name for watched in self._watched.values() for name in watched.gpus}
        gpus = self._gpus.look(names)
        trees = process_trees.descendants([watched.pid for watched in self._watched.values()])
        for token, watched in self._watched.items():
            # What a step's program starts is the scheduler's child and not ours; on this node it is
            # known by its mark.
            if any(process_trees.is_called(pid, *STEP_PROGRAMS) for pid in trees[watched.pid]):
                from runyard.node.system.processes import marked

                trees[watched.pid] = process_trees.grown([*trees[watched.pid], *marked([token])])
        # The fair share of shared memory is dear to read: of one program at a time.
        due = min(self._watched.values(), key=lambda watched: watched.pss.due, default=None)
        for watched in self._watched.values():
            is_next = self._often or watched is due
            watched.look(trees[watched.pid], gpus, exact=is_next and watched.pss.is_due())
        # Last: a program that is freed may be gone before the next look.
        if time.monotonic() >= self._clients_due:
            self._look_at_clients(trees)
        shown = {
            name: {key: value for key, value in usage.items() if key != "processes"}
            for name, usage in gpus.items()
        }
        attempts = {token: watched.usage() for token, watched in self._watched.items()}
        return {"at": time.time(), "attempts": attempts, "gpus": shown}

    def _look_at_clients(self, trees: dict[int, list[int]]) -> None:
        self._clients_due = time.monotonic() + LOOK_EVERY
        sent = set(self._lost_teardowns.look(pid for tree in trees.values() for pid in tree))
        for watched in self._watched.values():
            watched.lost_teardown = watched.lost_teardown or bool(sent & set(trees[watched.pid]))

    @property
    def is_idle(self) -> bool:
        return not self._watched


def main(words: list[str] | None = None) -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        # Who starts us ends us, by closing our input.
        signal.signal(number, signal.SIG_IGN)
    words = sys.argv[1:] if words is None else words
    every = float(words[1]) if words[:1] == ["--every"] else None
    if words and every is None:
        return _answer(words[0], words[1:])
    with contextlib.suppress(OSError):
        os.nice(5)
    sampler, rest, due = Sampler(often=every is not None), b"", 0.0
    while True:
        left = None if sampler.is_idle else max(0.0, due - time.monotonic())
        if select.select([0], [], [], left)[0]:
            data = os.read(0, 1 << 16)
            if not data:
                return 0
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                sampler.hear(json.loads(line))
            # What began just now is to be seen soon, not only with the next round.
            due = min(due or time.monotonic() + _SOON, time.monotonic() + _SOON)
        elif not sampler.is_idle:
            begun = time.monotonic()
            samples = json.dumps(sampler.look())
            # About a hundredth of a core, however many there are to look at.
            pause = 100 * (time.monotonic() - begun)
            due = time.monotonic() + (every or min(max(_EVERY, pause), _AT_LEAST_EVERY))
            try:
                os.write(1, f"{samples}\n".encode())
            except OSError:
                return 0


def _answer(question: str, names: list[str]) -> int:
    """One question before anything starts: which GPUs are there, which of these are exclusive, or
    what each of them is and how much of its memory is taken."""
    from runyard.node.devices.nvml import Driver, NoDriver

    try:
        driver = Driver()
    except NoDriver as error:
        print(f"runyard: {error}", file=sys.stderr)
        return 0
    if question == "--exclusive":
        devices = {name: driver.device(name) for name in names}
        cards = [
            name
            for name, device in devices.items()
            if device is not None and driver.refuses_sharing(device)
        ]
    elif question == "--cards":
        cards = [json.dumps(_card(driver, name)) for name in names or driver.uuids()]
    else:
        cards = driver.uuids()
    print("\n".join(cards))
    return 0


def _card(driver: Driver, name: str) -> dict[str, Any]:
    device = driver.device(name)
    total, used = (0, 0) if device is None else driver.memory(device) or (0, 0)
    model = "" if device is None else driver.model(device)
    index = None if device is None else driver.index(device)
    card = {} if index is None else {"index": index}
    return {"name": name, "model": model, "total": total, "used": used, **card}


if __name__ == "__main__":
    sys.exit(main())
