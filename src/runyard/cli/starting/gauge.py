"""Measure what a program needs, and say what to ask for and how many share a GPU.

  runyard gauge -- python train.py --lr 0.1      run it here for a few minutes and look
  runyard gauge --write -- python train.py       and put the request into runyard.yaml
  runyard gauge --pack -- python train.py --seed {seed}   how many at a time get the most done
  runyard gauge --tasks tasks.txt -j 4           a whole task file, as it would run
  runyard gauge --on slurm --gpus 1 -- python train.py    in a short job, on the real hardware
  runyard gauge --list                           what is known so far, by kind of experiment

It ends when memory has levelled out and the pace is known, and ends the program then. Nothing is
tracked: wandb is offline, in a folder that is thrown away. The margins are settings of runyard.yaml
(gauge:). What was measured is kept for each kind of experiment, for the next estimate.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runyard.actions.owner import find_owner
from runyard.cli.completers import complete_file
from runyard.cli.letters import spelled
from runyard.cli.output import print_json, say
from runyard.cli.parser import duration, positive
from runyard.cli.project_options import project_options
from runyard.cli.slurm_options import add_slurm_arguments, refuse_slurm_options
from runyard.cli.starting.slots import add_slot_arguments
from runyard.cli.streams import unfiltered
from runyard.errors import ProgramError, UsageError
from runyard.home import locate, prepare
from runyard.printable import printable
from runyard.schedulers.choice import has_queue
from runyard.train.courses import VARIABLE as COURSES
from runyard.train.courses import courses_folder

if TYPE_CHECKING:
    from runyard.config.request import Request
    from runyard.gauge.conclusions import Conclusion, Raw
    from runyard.gauge.measuring import Card

_MOST_TOGETHER = 32
_SEED = "{seed}"
INTERRUPTED = 130
# Beside others, the pace alone is of interest.
_LEAST_TOGETHER = 15.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "runyard gauge [options] [--] PROGRAM [ARGUMENTS ...]"
    parser.add_argument("--for", type=duration, dest="span", metavar="TIME",
                        help="look for at most so long (default: gauge: time in runyard.yaml, "
                        "5m)")  # fmt: skip
    parser.add_argument("--whole", action="store_true", help="let it run to its end")
    parser.add_argument("--steps", type=positive, metavar="N",
                        help="steps of a whole run, where the program does not tell")  # fmt: skip
    parser.add_argument("--pack", type=positive, nargs="?", const=_MOST_TOGETHER, metavar="MOST",
                        help="run 1, 2, 4 and so on at a time, up to where more stops paying; "
                        "{seed} in the command is the copy's number")  # fmt: skip
    tasks = parser.add_argument("--tasks", metavar="FILE",
                                help="measure the lines of a task file together, as many as -j or "
                                "--per-gpu says (default: all)")  # fmt: skip
    tasks.completer = complete_file  # type: ignore[attr-defined]
    add_slot_arguments(parser, "programs")
    parser.add_argument("--kind", metavar="NAME", help="kind of experiment under which it is kept "
                        "(default: the program's name)")  # fmt: skip
    parser.add_argument(*spelled("--project"), help="project (default: runyard.yaml's, or this "
                        "folder's name)")  # fmt: skip
    parser.add_argument("--write", action="store_true", help="write it into runyard.yaml")
    parser.add_argument("--no-keep", action="store_true", help="keep no figures on the server")
    parser.add_argument("--list", action="store_true", help="show what is known, and run nothing")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    parser.add_argument("--dry-run", action="store_true",
                        help="with --on slurm: show what would be asked")  # fmt: skip
    add_slurm_arguments(parser)
    # What the job on the node is told: where to leave what it measured, what starts programs there.
    parser.add_argument("--raw", help=argparse.SUPPRESS)
    parser.add_argument("--started-by", help=argparse.SUPPRESS)
    parser.add_argument("command_line", nargs=argparse.REMAINDER, metavar="-- PROGRAM ...",
                        help="the program and its arguments")  # fmt: skip
    parser.set_defaults(parser=parser)


def run(args: argparse.Namespace) -> int:
    refuse_slurm_options(args)
    behind_dashes = args.command_line[:1] == ["--"]
    words = args.command_line[1:] if behind_dashes else args.command_line
    if words and words[0].startswith("-") and not behind_dashes:
        args.parser.refuse_unknown(words)
    from runyard.cli.resource_flags import given_flags
    from runyard.config.project_file import read_project

    request = read_project(Path.cwd(), given_flags(args))
    if args.list:
        from runyard.cli.starting.gauge_view import list_known

        return list_known(_project(args), as_json=args.json)
    if (not words) == (args.tasks is None):
        raise UsageError(
            "runyard gauge: which program?",
            mend="runyard gauge -- python train.py   or:  runyard gauge --tasks tasks.txt",
        )
    if has_queue(args.on):
        from runyard.cli.starting.gauge_job import measure_in_job

        raw = measure_in_job(args)
        if raw is None:
            return 0
    else:
        try:
            raw = measure_here(args, request, words)
        except KeyboardInterrupt:
            say("Ctrl-C: nothing was measured yet")
            raise
        if args.raw:
            return _leave(raw, Path(args.raw))
    return _finish(args, request, raw, words)


def measure_here(args: argparse.Namespace, request: Request, words: list[str]) -> Raw:
    """Run it on this machine."""
    from runyard.gauge.measuring import cards_here
    from runyard.node.devices.layout import memory_mb

    args.around = dict(os.environ)
    if not args.no_keep:
        home = locate()
        prepare(home)  # The program may be the first to write into it.
        args.around.setdefault(COURSES, courses_folder(str(home.path), _project(args)))
    cards = tuple(cards_here())
    if not cards:
        say("no GPU is here: host memory, CPU and time are measured")
    seconds = args.span or request.gauge.time
    if args.whole:
        seconds = args.span or float("inf")
    launcher = shlex.split(args.started_by) if args.started_by else []
    memory = memory_mb(os.environ, len(os.sched_getaffinity(0)))
    steps = args.steps or request.gauge.steps
    if args.tasks is not None:
        return _measure_tasks(args, launcher, cards, seconds, steps, memory)
    return _measure_program(args, [*launcher, *words], cards, seconds, steps, memory)


def _measure_tasks(
    args: argparse.Namespace,
    launcher: list[str],
    cards: tuple[Card, ...],
    seconds: float,
    steps: int | None,
    memory: int | None,
) -> Raw:
    from runyard.config.task_list import read_task_file
    from runyard.gauge.conclusions import Raw

    lines = [task.command_line for task in read_task_file(args.tasks).tasks.values()]
    per_gpu = args.per_gpu if isinstance(args.per_gpu, int) else None
    at_once = args.slots or (per_gpu * max(1, len(cards)) if per_gpu else len(lines))
    chosen = lines[:at_once]
    say(f"{args.tasks}: {len(chosen)} of {len(lines)} command lines, all at the same time")
    seen = _measured(
        args, [[*launcher, "bash", "-c", line] for line in chosen],
        seconds=seconds, cards=cards, per_gpu=per_gpu, to_the_end=args.whole, total=steps,
        mps=args.mps or "auto",
    )  # fmt: skip
    _refuse_failed(seen)
    return Raw(seen, cards, at_once=len(chosen), job_memory=memory)


def _measure_program(
    args: argparse.Namespace,
    words: list[str],
    cards: tuple[Card, ...],
    seconds: float,
    steps: int | None,
    memory: int | None,
) -> Raw:
    from runyard.gauge.advice import room_on
    from runyard.gauge.conclusions import Raw
    from runyard.gauge.packs import Level, climb

    seen = _measured(
        args, [_copy(words, 0)], seconds=seconds, cards=cards, to_the_end=args.whole, total=steps
    )
    _refuse_failed(seen)
    if args.pack is None or seen.is_cut_short:
        return Raw(seen, cards, job_memory=memory)
    cpus = len(os.sched_getaffinity(0))
    # One GPU is filled: what is found there holds for the others.
    card = cards[:1]
    peak = seen.programs[0].vram_peak
    room = room_on(card[0].total, peak, 0.0) if card and peak else args.pack
    most, why = min((cpus, "no more CPUs are here"), (room, "no more fit its memory"))

    cut_short: list[int] = []

    def level(count: int) -> Level:
        if count == 1:
            return Level(1, seen.rate(), "its steps are not known: log with wandb, or use --whole")
        copies = [_copy(words, place) for place in range(count)]
        found = _measured(
            args, copies, seconds=seconds, cards=card, per_gpu=count, to_the_end=args.whole,
            total=steps, mps=args.mps or "auto", least=_LEAST_TOGETHER,
        )  # fmt: skip
        if found.is_cut_short:
            cut_short.append(count)
            return Level(count, None, "Ctrl-C")
        last = found.said.splitlines()[-1] if found.said else "its steps are not known"
        rate = found.rate()
        if rate is not None:
            say(f"{count} at a time: {rate:.4g} steps/s together ({found.mps or 'on CPUs'})")
        return Level(count, rate, last)

    found = climb(level, max(1, most), why, limit=args.pack)
    return Raw(replace(seen, is_cut_short=bool(cut_short)), cards, climb=found, job_memory=memory)


def _measured(args: argparse.Namespace, commands: list[list[str]], **more: Any) -> Any:
    from runyard.gauge.measuring import CannotStart, measure

    is_shown = sys.stderr.isatty()

    def show(text: str) -> None:
        if is_shown:
            terminal = unfiltered(sys.stderr)
            print(f"\r\x1b[Krunyard: {printable(text)}", end="", file=terminal, flush=True)

    try:
        return measure(commands, Path.cwd(), environ=args.around, show=show, **more)
    except CannotStart as error:
        raise ProgramError(
            f"{commands[0][0]} {error}",
            exit_code=127,
            mend="check its spelling, and that its environment is active",
        ) from error
    finally:
        if is_shown:
            print("\r\x1b[K", end="", file=unfiltered(sys.stderr), flush=True)


def _copy(words: list[str], place: int) -> list[str]:
    return [word.replace(_SEED, str(place)) for word in words]


def _refuse_failed(seen: Any) -> None:
    code = next((one.exit_code for one in seen.programs if one.exit_code), None)
    if code is not None:
        how = f"exit code {code}" if code > 0 else f"signal {-code}"
        said = "\n  ".join(["", *seen.said.splitlines()]) if seen.said else None
        raise ProgramError(
            f"the program failed ({how}), so there is nothing to measure", exit_code=1, said=said,
            mend="run it by itself first: runyard run -- ...",
        )  # fmt: skip


def _leave(raw: Raw, path: Path) -> int:
    import json

    from runyard.gauge.conclusions import raw_to_json
    from runyard.home import write_whole

    write_whole(path, json.dumps(raw_to_json(raw)) + "\n")
    return 0


def _finish(args: argparse.Namespace, request: Request, raw: Raw, words: list[str]) -> int:
    """Say it, keep it, write it."""
    from runyard.cli.starting.gauge_view import print_conclusion
    from runyard.gauge.conclusions import conclude

    found = conclude(raw, request)
    kind = args.kind or _kind(args, request, words)
    if raw.seen.is_cut_short:
        return _finish_early(args, found, raw, kind)
    if args.json:
        print_json({"kind": kind, "project": _project(args), **found.to_json()})
    else:
        print_conclusion(found, raw, kind)
    if not args.no_keep:
        _keep(args, found, kind)
    if args.write:
        from runyard.config.project_edit import write_settings

        path = write_settings(request.folder, _settings(found, request))
        say(f"written into {path}")
    if not args.json:
        say(f"next, run it:  {_next(args, found, words)}")
    return 0 if found.fits in (None, True) else 1


def _finish_early(args: argparse.Namespace, found: Conclusion, raw: Raw, kind: str) -> int:
    """Ctrl-C: what is known so far is said; nothing is kept or written."""
    from runyard.cli.starting.gauge_view import print_conclusion

    say("Ctrl-C: the program was ended; this was measured so far, and is not kept")
    if args.json:
        print_json({"kind": kind, "project": _project(args), "cut_short": True, **found.to_json()})
    elif found.measured.memory_peak or found.measured.step:
        print_conclusion(found, raw, kind)
    else:
        print("nothing yet")
    return INTERRUPTED


def _next(args: argparse.Namespace, found: Conclusion, words: list[str]) -> str:
    from runyard.cli.starting.gauge_view import ask_text

    asked = "" if args.write else f" {ask_text(found.ask)}"
    if args.tasks is not None:
        return f"runyard farm {shlex.quote(args.tasks)} --on slurm{asked}"
    return f"runyard submit{asked} -- {shlex.join(words)}"


def _settings(found: Conclusion, request: Request) -> dict[tuple[str, str], str]:
    """What goes into the file; memory in the form in which the file has it."""
    from runyard.reading.units import short_memory

    settings = found.settings()
    if request.resources.memory_per_gpu is not None and request.resources.gpus:
        del settings["resources", "memory"]
        each = -(-found.ask.memory // request.resources.gpus)
        settings["resources", "memory_per_gpu"] = short_memory(each)
    return settings


def _keep(args: argparse.Namespace, found: Conclusion, kind: str) -> None:
    from runyard.cli.connect import server
    from runyard.errors import RunyardError

    figures = {**found.measured.to_json(), "made_at": time.time()}
    if found.climb is not None and found.climb.best.rate:
        gain = found.climb.best.gain_over(found.climb.levels[0]) or 1.0
        figures |= {"per_gpu": found.climb.best.count, "gain": round(gain, 3)}
    try:
        server(quiet=True).figures.add(_project(args), kind, found.hardware, figures)
    except RunyardError as error:
        say(f"the figures are not kept: {error.what}")


def _kind(args: argparse.Namespace, request: Request, words: list[str]) -> str:
    from runyard.gauge.kinds import kind_of, kind_of_line

    if args.tasks is not None:
        from runyard.config.task_list import read_task_file

        first = next(iter(read_task_file(args.tasks).tasks.values()))
        return kind_of_line(first.command_line, request.gauge.by)
    return kind_of(words, request.gauge.by)


def _project(args: argparse.Namespace) -> str:
    return find_owner(project_options(args), Path.cwd()).project
