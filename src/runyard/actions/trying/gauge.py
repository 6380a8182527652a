"""Measure what a program needs on this machine; conclude from it, keep it, write it down."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runyard.actions.connect import open_server
from runyard.actions.events import Event, Notice, Notify
from runyard.actions.owner import find_owner
from runyard.actions.sweeping.slots import Slots
from runyard.actions.tracking import ProjectOptions
from runyard.errors import ProgramError, RunyardError
from runyard.home import locate, prepare
from runyard.save_protocol import COURSES, courses_folder
from runyard.shapes.jobs import KeptFigures

if TYPE_CHECKING:
    from runyard.config.request import Request
    from runyard.gauge.conclusions import Conclusion, Raw
    from runyard.gauge.measuring import Card
    from runyard.gauge.packs import Climb

_SEED = "{seed}"
# Beside others, the pace alone is of interest.
_LEAST_TOGETHER = 15.0


@dataclass(frozen=True)
class GaugeRequest:
    """A command, or a file of command lines that run together."""

    command: Sequence[str] = ()
    tasks: str | None = None
    options: ProjectOptions = field(default_factory=ProjectOptions)
    slots: Slots = field(default_factory=Slots)
    seconds: float | None = None
    """Look for at most so long; None: as runyard.yaml says."""
    whole: bool = False
    """Let it run to its end."""
    steps: int | None = None
    """Of a whole run, where the program does not tell."""
    pack: int | None = None
    """Run 1, 2, 4 and so on at a time, up to so many."""
    kind: str | None = None
    keeps: bool = True
    """Keep the figures on the server."""
    launcher: Sequence[str] = ()
    """What starts programs there: a container."""

    @property
    def project(self) -> str:
        return find_owner(self.options, Path.cwd()).project


@dataclass(frozen=True)
class Looking(Event):
    """What is seen at the moment; None: this look is over."""

    text: str | None


@dataclass(frozen=True)
class Gauged:
    """What was measured, and what that means for a job."""

    kind: str
    project: str
    conclusion: Conclusion
    raw: Raw


def measure_here(request: GaugeRequest, project: Request, notify: Notify) -> Raw:
    """Run it on this machine."""
    from runyard.gauge.measuring import cards_here
    from runyard.node.devices.layout import memory_mb

    variables = dict(os.environ)
    if request.keeps:
        home = locate()
        prepare(home)  # The program may be the first to write into it.
        variables.setdefault(COURSES, courses_folder(str(home.path), request.project))
    cards = tuple(cards_here())
    if not cards:
        notify(Notice("no GPU is here: host memory, CPU and time are measured"))
    seconds = request.seconds or project.gauge.time
    if request.whole:
        seconds = request.seconds or float("inf")
    memory = memory_mb(os.environ, len(os.sched_getaffinity(0)))
    steps = request.steps or project.gauge.steps
    look = _Look(request, variables, notify, cards, seconds, steps, memory)
    return _measure_program(look) if request.tasks is None else _measure_tasks(look)


@dataclass(frozen=True)
class _Look:
    """Programs that run aside, with the same around them each time."""

    request: GaugeRequest
    variables: Mapping[str, str]
    notify: Notify
    cards: tuple[Card, ...]
    seconds: float
    steps: int | None
    memory: int | None

    def measured(self, commands: list[list[str]], **more: Any) -> Any:
        from runyard.gauge.measuring import CannotStart, measure

        def show(text: str) -> None:
            self.notify(Looking(text))

        try:
            return measure(
                commands, Path.cwd(), environ=self.variables, show=show, seconds=self.seconds,
                total=self.steps, to_the_end=self.request.whole, **{"cards": self.cards, **more},
            )  # fmt: skip
        except CannotStart as error:
            raise ProgramError(
                f"{commands[0][0]} {error}",
                exit_code=127,
                mend="check its spelling, and that its environment is active",
            ) from error
        finally:
            self.notify(Looking(None))


def _measure_tasks(look: _Look) -> Raw:
    from runyard.config.task_list import read_task_file
    from runyard.gauge.conclusions import Raw

    request, cards = look.request, look.cards
    assert request.tasks is not None
    lines = [task.command_line for task in read_task_file(request.tasks).tasks.values()]
    per_gpu = request.slots.per_gpu if isinstance(request.slots.per_gpu, int) else None
    at_once = request.slots.count or (per_gpu * max(1, len(cards)) if per_gpu else len(lines))
    chosen = lines[:at_once]
    look.notify(
        Notice(
            f"{request.tasks}: {len(chosen)} of {len(lines)} command lines, all at the same time"
        )
    )
    seen = look.measured(
        [[*request.launcher, "bash", "-c", line] for line in chosen],
        per_gpu=per_gpu, mps=request.slots.mps or "auto",
    )  # fmt: skip
    _refuse_failed(seen)
    return Raw(seen, cards, at_once=len(chosen), job_memory=look.memory)


def _measure_program(look: _Look) -> Raw:
    from runyard.gauge.advice import room_on
    from runyard.gauge.conclusions import Raw
    from runyard.gauge.packs import Level, climb

    request, cards = look.request, look.cards
    words = [*request.launcher, *request.command]
    seen = look.measured([_copy(words, 0)])
    _refuse_failed(seen)
    if request.pack is None or seen.is_cut_short:
        return Raw(seen, cards, job_memory=look.memory)
    cpus = len(os.sched_getaffinity(0))
    # One GPU is filled: what is found there holds for the others.
    card = cards[:1]
    peak = seen.programs[0].vram_peak
    room = room_on(card[0].total, peak, 0.0) if card and peak else request.pack
    most, why = min((cpus, "no more CPUs are here"), (room, "no more fit its memory"))

    cut_short: list[int] = []

    def level(count: int) -> Level:
        if count == 1:
            return Level(1, seen.rate(), "its steps are not known: log with wandb, or use --whole")
        copies = [_copy(words, place) for place in range(count)]
        measured = look.measured(
            copies, cards=card, per_gpu=count, mps=request.slots.mps or "auto",
            least=_LEAST_TOGETHER,
        )  # fmt: skip
        if measured.is_cut_short:
            cut_short.append(count)
            return Level(count, None, "Ctrl-C")
        last = measured.said.splitlines()[-1] if measured.said else "its steps are not known"
        rate = measured.rate()
        if rate is not None:
            look.notify(
                Notice(
                    f"{count} at a time: {rate:.4g} steps/s together ({measured.mps or 'on CPUs'})"
                )
            )
        return Level(count, rate, last, measured.mps == "with MPS")

    conclusion = climb(level, max(1, most), why, limit=request.pack)
    seen = replace(seen, is_cut_short=bool(cut_short))
    return Raw(seen, cards, climb=conclusion, job_memory=look.memory)


def _copy(words: list[str], place: int) -> list[str]:
    return [word.replace(_SEED, str(place)) for word in words]


def _refuse_failed(seen: Any) -> None:
    code = next((program.exit_code for program in seen.programs if program.exit_code), None)
    if code is not None:
        how = f"exit code {code}" if code > 0 else f"signal {-code}"
        output = "\n  ".join(["", *seen.said.splitlines()]) if seen.said else None
        raise ProgramError(
            f"the program failed ({how}), so there is nothing to measure", exit_code=1, said=output,
            mend="run it by itself first: runyard run -- ...",
        )  # fmt: skip


def conclude_from(raw: Raw, request: GaugeRequest, project: Request) -> Gauged:
    from runyard.gauge.conclusions import conclude

    kind = request.kind or _kind(request, project)
    return Gauged(kind, request.project, conclude(raw, project), raw)


def write_request(gauged: Gauged, project: Request) -> Path:
    """Into runyard.yaml; memory in the form in which the file has it."""
    from runyard.config.project_edit import write_settings
    from runyard.reading.units import short_memory

    conclusion = gauged.conclusion
    settings, resources = conclusion.settings(), project.resources
    if resources.memory_per_gpu is not None and resources.gpus:
        del settings["resources", "memory"]
        each = -(-conclusion.ask.memory // resources.gpus)
        settings["resources", "memory_per_gpu"] = short_memory(each)
    return write_settings(project.folder, settings)


def leave_raw(raw: Raw, path: Path) -> None:
    """What a job measured, for whoever waits for it."""
    import json

    from runyard.gauge.conclusions import raw_to_json
    from runyard.home import write_whole

    write_whole(path, json.dumps(raw_to_json(raw)) + "\n")


def newest_of_each(figures: Sequence[KeptFigures]) -> list[KeptFigures]:
    """The first of each kind of experiment and hardware."""
    newest: dict[tuple[str, str], KeptFigures] = {}
    for row in figures:
        newest.setdefault((row["kind"], row["hardware"]), row)
    return list(newest.values())


def keep_figures(gauged: Gauged, notify: Notify) -> None:
    """On the server, for the next estimate of this kind."""
    conclusion = gauged.conclusion
    figures = {**conclusion.measured.to_json(), "made_at": time.time()}
    if conclusion.climb is not None and conclusion.climb.best.rate:
        gain = conclusion.climb.best.gain_over(conclusion.climb.levels[0]) or 1.0
        figures |= {"per_gpu": conclusion.climb.best.count, "gain": round(gain, 3)}
        _teach_packing(gauged, conclusion.climb)
    try:
        api = open_server(notify, quiet=True)
        api.figures.add(gauged.project, gauged.kind, conclusion.hardware, figures)
    except RunyardError as error:
        notify(Notice(f"the figures are not kept: {error.what}"))


def _teach_packing(gauged: Gauged, climb: Climb) -> None:
    """Sweeps of this program with `--per-gpu auto` begin with what was measured here."""
    from runyard.node.devices.pack_memory import PackMemory

    card = next(iter(gauged.raw.cards), None)
    setting = "mps" if any(level.has_mps for level in climb.levels) else "turns"
    program = gauged.kind.split()[0]
    model, total = ("", 0) if card is None else (card.model, card.total)
    memory = PackMemory(str(locate().path), gauged.project, program, model, setting)
    memory.write(climb.learnt(gauged.raw.seen.programs[0].vram_peak or 0, total))


def _kind(request: GaugeRequest, project: Request) -> str:
    from runyard.gauge.kinds import kind_of, kind_of_line

    if request.tasks is not None:
        from runyard.config.task_list import read_task_file

        first = next(iter(read_task_file(request.tasks).tasks.values()))
        return kind_of_line(first.command_line, project.gauge.by)
    return kind_of(list(request.command), project.gauge.by)
