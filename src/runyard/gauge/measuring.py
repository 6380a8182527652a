"""Run and measure programs: one, the lines of a task file, or copies of one."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from runyard.gauge.measured import Look, Measured, is_enough, summarise
from runyard.gauge.steps import Mark
from runyard.gauge.tryout import CannotStart, Tryout
from runyard.node.attempt.keeper import Keeper, start_keeper
from runyard.node.devices import layout as node_layout
from runyard.node.devices.gpus import ask_cards, find_gpus
from runyard.node.devices.mps import NoMps, start_mps
from runyard.node.devices.sampler_client import SAMPLER
from runyard.node.devices.slot_shares import share_out

_EVERY = 0.5
LEAST_SECONDS = 30.0


@dataclass(frozen=True)
class Card:
    """A GPU that programs on this machine may use. Sizes in bytes."""

    name: str
    model: str
    total: int
    used: int = 0


@dataclass(frozen=True)
class Seen:
    """The result of running programs together."""

    programs: tuple[Measured, ...]
    marks: tuple[tuple[Mark, ...], ...] = field(default=(), repr=False)
    memory_together: int = 0
    """The largest sum of their memory at one time."""
    said: str = ""
    """The last lines of a program that failed."""
    mps: str = ""
    """Whether MPS was used, or why not."""
    is_cut_short: bool = False
    """Whether somebody pressed Ctrl-C."""

    @property
    def has_failed(self) -> bool:
        return any(program.exit_code not in (0, None) for program in self.programs)

    def rate(self) -> float | None:
        """Steps per second of all together while all ran; ends, if no steps were logged."""
        if self.has_failed:
            return None
        if all(len(marks) > 1 for marks in self.marks):
            begin = max(marks[0][1] for marks in self.marks)
            end = min(marks[-1][1] for marks in self.marks)
            rates = [_rate(marks, begin, end) for marks in self.marks]
            known = [rate for rate in rates if rate is not None]
            return sum(known) if len(known) == len(rates) else None
        if all(program.exit_code == 0 for program in self.programs):
            return sum(1 / max(program.seconds, 1e-9) for program in self.programs)
        return None


def _rate(marks: Sequence[Mark], begin: float, end: float) -> float | None:
    inside = [mark for mark in marks if begin <= mark[1] <= end]
    # The first steps beside new neighbours are slower than later ones.
    late = [mark for mark in inside if mark[1] >= begin + (end - begin) / 4]
    used = late if len(late) > 2 else inside
    if len(used) < 2 or used[-1][1] <= used[0][1]:
        return None
    return (used[-1][0] - used[0][0]) / (used[-1][1] - used[0][1])


@dataclass
class _Watched:
    tryout: Tryout
    began: float
    looks: list[Look] = field(default_factory=list)
    ended: float | None = None
    code: int | None = None


def cards_here(environ: Mapping[str, str] = os.environ) -> list[Card]:
    """The GPUs that programs started here would see; none without a driver."""
    names = find_gpus("auto", environ, lambda: [card["name"] for card in ask_cards()]).names
    if not names:
        return []
    return [
        Card(ask_card["name"], ask_card["model"], ask_card["total"], ask_card["used"])
        for ask_card in ask_cards(names)
        if ask_card["total"]
    ]


def measure(
    commands: Sequence[Sequence[str]],
    cwd: Path,
    *,
    seconds: float,
    cards: Sequence[Card] = (),
    per_gpu: int | None = None,
    to_the_end: bool = False,
    total: int | None = None,
    mps: str = "auto",
    least: float = LEAST_SECONDS,
    environ: Mapping[str, str] = os.environ,
    show: Callable[[str], None] = lambda _text: None,
) -> Seen:
    """Run these programs together until enough is known, and no longer than `seconds`.

    `per_gpu`: the number of programs that share each GPU, as with an agent; None: each sees all.
    `total`: steps of a whole run, if the program does not report them.
    """
    names = [card.name for card in cards]
    used = {card.name: card.used for card in cards}
    with contextlib.ExitStack() as stack:
        keeper = stack.enter_context(_keeping())
        is_shared = bool(names) and (per_gpu or -(-len(commands) // len(names))) > 1
        shared, words = stack.enter_context(_sharing(names if is_shared else (), keeper, mps))
        # The sampler starts first, so that it also sees short programs.
        sampler = stack.enter_context(_Sampler(names))
        watched: list[_Watched] = []
        cards_used: dict[str, int] = {}
        is_cut_short = False
        try:
            for index, command in enumerate(commands):
                more, pinned = _place(names, per_gpu, len(commands), index)
                tryout = stack.enter_context(
                    Tryout(f"gauge-{index}", environ=environ, more=shared(more))
                )
                keeper.begins(tryout.token)
                stack.callback(keeper.ended, tryout.token)
                with pinned:
                    keeper.began(tryout.start(command, cwd), tryout.token)
                stack.callback(tryout.end)
                watched.append(_Watched(tryout, time.time()))
                sampler.watch(tryout.token, tryout.pid)
            _watch(watched, sampler, seconds, least, to_the_end, show, cards_used)
        except KeyboardInterrupt:
            if not watched:
                raise
            is_cut_short = True
        seen = _with_card(_seen(watched, total), cards_used, used)
        return replace(seen, mps=words, is_cut_short=is_cut_short)


def _place(
    names: Sequence[str], per_gpu: int | None, count: int, index: int
) -> tuple[dict[str, str], contextlib.AbstractContextManager[None]]:
    """The variables and the CPUs that an agent would give to the program in that slot."""
    if count == 1:
        return {}, contextlib.nullcontext()
    gpus = find_gpus(",".join(names) or "none", os.environ, list)
    cpus = sorted(os.sched_getaffinity(0))
    shares = share_out(names, cpus, slots=count, per_gpu=per_gpu)
    placed = node_layout.Layout(shares, gpus, cpus, None)
    variables = placed.variables(index, os.environ, slots=count, together=shares[index].together)
    return variables, placed.pinned(index)


@contextlib.contextmanager
def _keeping() -> Iterator[Keeper]:
    """A keeper process that ends the programs if this process is killed."""
    with tempfile.TemporaryDirectory(prefix="runyard-aside-") as empty:
        keeper = start_keeper(empty, lambda _spool: None)
        try:
            yield keeper
        finally:
            keeper.dismiss()
            with contextlib.suppress(ChildProcessError):
                os.waitpid(keeper.pid, 0)


@contextlib.contextmanager
def _sharing(
    names: Sequence[str], keeper: Keeper, mps: str
) -> Iterator[tuple[Callable[[Mapping[str, str]], dict[str, str]], str]]:
    """MPS on shared GPUs, if it is available, as with an agent. Yields a function that adds its
    variables to those of a program, and a text for people."""
    if not names:
        yield dict, ""
        return
    if mps == "off":
        yield dict, "without MPS: programs on one GPU take turns"
        return
    try:
        daemon = start_mps(tuple(names), os.environ, keeper)
    except NoMps as error:
        yield dict, f"without MPS ({error}): programs on one GPU take turns"
        return
    try:
        yield daemon.settings, "with MPS"
    finally:
        daemon.end(keeper)


def _watch(
    watched: Sequence[_Watched],
    sampler: _Sampler,
    seconds: float,
    least: float,
    to_the_end: bool,
    show: Callable[[str], None],
    most: dict[str, int],
) -> None:
    """Sample until enough is known. `most` collects the largest use of each card."""
    end = time.monotonic() + seconds
    while True:
        sample = sampler.hear(_EVERY)
        now = time.time()
        for program in watched:
            program.tryout.steps.look()
            code = program.tryout.poll()
            if code is not None and program.ended is None:
                program.ended, program.code = now, code
        if sample is not None:
            _take(sample, watched, most)
            show(_words(watched, now))
        running = [program for program in watched if program.ended is None]
        if not running or any(program.code for program in watched) or time.monotonic() >= end:
            return
        if not to_the_end and all(
            is_enough(program.looks, program.tryout.steps.marks, now - program.began, least)
            for program in running
        ):
            return


def _take(sample: dict[str, Any], watched: Sequence[_Watched], most: dict[str, int]) -> None:
    for name, card in sample["gpus"].items():
        most[name] = max(most.get(name, 0), card["used"])
    for program in watched:
        seen = sample["attempts"].get(program.tryout.token)
        if seen is None or not seen["memory_peak"] or program.ended is not None:
            continue
        program.looks.append(
            Look(
                at=sample["at"],
                memory=seen["memory"],
                memory_peak=seen["memory_peak"],
                cpu_seconds=seen["cpu_seconds"],
                read_bytes=seen["read_bytes"],
                written_bytes=seen["written_bytes"],
                vram=seen["vram"],
                gpu_use=seen.get("gpu_use"),
            )
        )


def _words(watched: Sequence[_Watched], now: float) -> str:
    marks = [program.tryout.steps.marks for program in watched]
    steps = sum(program_marks[-1][0] for program_marks in marks if program_marks)
    memory = sum(program.looks[-1].memory for program in watched if program.looks)
    vram = sum(sum(program.looks[-1].vram.values()) for program in watched if program.looks)
    gpu = f", {vram / 1e9:.1f} GB GPU memory" if vram else ""
    since = now - min(program.began for program in watched)
    return f"{since:.0f} s: {steps} steps, {memory / 1e9:.1f} GB memory{gpu}"


def _seen(watched: Sequence[_Watched], total: int | None) -> Seen:
    now = time.time()
    programs = []
    for program in watched:
        program.tryout.steps.look()
        steps = program.tryout.steps
        programs.append(
            summarise(
                program.looks,
                steps.marks,
                began=program.began,
                ended=program.ended or now,
                exit_code=program.code,
                total=steps.total or total,
                left=steps.left,
                left_between=steps.left_between,
            )
        )
    failed = next((program for program in watched if program.code), None)
    return Seen(
        programs=tuple(programs),
        marks=tuple(tuple(program.tryout.steps.marks) for program in watched),
        memory_together=_together([program.looks for program in watched]),
        said="" if failed is None else failed.tryout.said(),
    )


def _together(series: Sequence[Sequence[Look]]) -> int:
    by_time: dict[float, int] = {}
    for looks in series:
        for look in looks:
            by_time[look.at] = by_time.get(look.at, 0) + look.memory
    return max(by_time.values(), default=0)


def _with_card(seen: Seen, most: Mapping[str, int], before: Mapping[str, int]) -> Seen:
    """If the driver lists none of the processes (in some containers it counts them in another
    namespace), only the growth of the cards' memory is known."""
    if any(program.vram_peaks for program in seen.programs):
        return seen
    count = len(seen.programs)
    grown = {
        name: (used - before.get(name, used)) // count
        for name, used in most.items()
        if used > before.get(name, used)
    }
    if not grown:
        return seen
    programs = tuple(
        replace(program, vram_peaks=grown, vram_is_of_card=True) for program in seen.programs
    )
    return replace(seen, programs=programs)


class _Sampler:
    """The process of the sampler, with a short interval."""

    def __init__(self, gpus: Sequence[str]) -> None:
        self._gpus = list(gpus)
        self._rest = b""

    def __enter__(self) -> _Sampler:
        self._process = subprocess.Popen(
            [*SAMPLER, "--every", str(_EVERY)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        return self

    def watch(self, token: str, pid: int) -> None:
        about = {
            "began": token, "pid": pid, "folder": "/nonexistent", "run": token, "gpus": self._gpus,
        }  # fmt: skip
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # It died: only the time is measured.
            self._process.stdin.write(json.dumps(about).encode() + b"\n")
            self._process.stdin.flush()

    def hear(self, seconds: float) -> dict[str, Any] | None:
        """The newest sample, or None after `seconds` without one."""
        assert self._process.stdout is not None
        handle = self._process.stdout.fileno()
        if not select.select([handle], [], [], seconds)[0]:
            return None
        data = os.read(handle, 1 << 20)
        if not data:
            time.sleep(seconds)  # It died: measure the time all the same.
            return None
        *lines, self._rest = (self._rest + data).split(b"\n")
        newest: dict[str, Any] | None = json.loads(lines[-1]) if lines else None
        return newest

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


__all__ = ["CannotStart", "Card", "Seen", "cards_here", "measure"]
