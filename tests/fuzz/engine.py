"""Tries inputs on a target, keeps those that reach something new, and tells what went wrong.

In CI: the corpus, and so many inputs from a fixed beginning, without looking at lines. The long
form (`scripts/fuzz.py`) goes on for as long as it is told, from a new beginning each time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Protocol

from tests.fuzz.limits import Cost, Finding, measured, watchdog
from tests.fuzz.mutations import Mutations, smaller
from tests.fuzz.tracing import Coverage

CORPUS = Path(__file__).parent / "corpus"
_LARGEST_KEPT = 3_000
_MOST_KEPT = 60
_MOST_TRIES_TO_SHRINK = 120


class Target(Protocol):
    """What is tried. `words` mean something to it; `place` names what an input asks, for figures.

    `run` raises Finding, or whatever must not be raised. `renew` forgets what inputs left behind.
    """

    @property
    def name(self) -> str: ...

    @property
    def words(self) -> Sequence[str]: ...

    def seeds(self) -> Sequence[Any]: ...

    def run(self, case: Any) -> None: ...

    def place(self, case: Any) -> str: ...

    def renew(self) -> None: ...

    def close(self) -> None: ...


@dataclass
class Figures:
    executions: int = 0
    seconds: float = 0.0
    kept: list[Any] = field(default_factory=list)
    """Inputs that reached something new."""
    cost: Cost = field(default_factory=Cost)
    slowest: str = ""
    findings: dict[str, Any] = field(default_factory=dict)
    """The smallest input of each kind of fault."""
    details: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return (
            f"{self.executions} executions in {self.seconds:.0f} s, {len(self.kept)} inputs kept, "
            f"{len(self.findings)} findings; slowest {self.cost.seconds:.2f} s of processor "
            f"time ({self.slowest}), the event loop held for {self.cost.blocked * 1000:.0f} ms at "
            f"most, most memory {self.cost.memory >> 20} MiB"
        )


def corpus_of(name: str) -> list[Any]:
    return [json.loads(file.read_text()) for file in sorted((CORPUS / name).glob("*.json"))]


def replay(target: Target, figures: Figures | None = None) -> Figures:
    """Every seed and every input of the corpus, once."""
    figures = figures or Figures()
    for case in [*target.seeds(), *corpus_of(target.name)]:
        _try(target, case, figures, None)
    return figures


def explore(
    target: Target,
    *,
    beginning: int,
    executions: int | None = None,
    seconds: float | None = None,
    coverage: Coverage | None = None,
    figures: Figures | None = None,
) -> Figures:
    """Inputs made from the seeds and the corpus, as many or for as long as is asked."""
    figures = figures or Figures()
    random = Random(beginning)
    pool = [*target.seeds(), *corpus_of(target.name)]
    mutations = Mutations(random, target.words, pool)
    begun = time.monotonic()
    done = 0
    while (executions is None or done < executions) and (
        seconds is None or time.monotonic() < begun + seconds
    ):
        # What was kept last is nearest to what nobody has seen.
        recent = coverage is not None and random.random() < 0.3
        case = mutations.change(random.choice(pool[-20:] if recent else pool))
        before = len(coverage.seen) if coverage else 0
        _try(target, case, figures, coverage)
        done += 1
        is_new = coverage is not None and len(coverage.seen) > before
        if is_new and len(json.dumps(case)) <= _LARGEST_KEPT:
            pool.append(case)
            figures.kept.append(case)
    figures.seconds += time.monotonic() - begun
    return figures


def _try(target: Target, case: Any, figures: Figures, coverage: Coverage | None) -> None:
    figures.executions += 1
    finding = _finding(target, case, figures, coverage)
    if finding is None or finding.kind in figures.findings:
        return
    # Once more, in a place where nothing was before, and without what looking at lines costs.
    target.renew()
    again = _finding(target, case, figures, None)
    if again is None:
        figures.details[f"not again: {finding.kind}"] = str(finding)
        return
    if again.kind in figures.findings:
        return
    figures.findings[again.kind] = _shrunk(target, case, again.kind)
    figures.details[again.kind] = str(again)


def _finding(
    target: Target, case: Any, figures: Figures, coverage: Coverage | None
) -> Finding | None:
    looking = coverage.watching() if coverage else contextlib.nullcontext()
    try:
        with measured() as cost, watchdog():
            try:
                with looking:
                    target.run(case)
            except Finding:
                raise
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt | SystemExit):
                    raise
                raise Finding(kind_of(error), _traceback(error)) from error
        if coverage is not None:
            # Looking at lines takes several times as long; what still seems slow is tried without.
            cost.seconds, cost.blocked = cost.seconds / 5, cost.blocked / 5
        if cost.seconds > figures.cost.seconds:
            figures.slowest = target.place(case)
        figures.cost.worst(cost)
        cost.check(target.place(case))
    except Finding as finding:
        return finding
    return None


def kind_of(error: BaseException) -> str:
    """The same for the same fault: the error, and the last line of ours that it came through."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if f"{os.sep}runyard{os.sep}" in frame.filename] or frames
    where = f"{Path(own[-1].filename).name}:{own[-1].name}" if own else "nowhere"
    return f"{type(error).__name__} in {where}"


def _traceback(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))[-3_000:]


def _shrunk(target: Target, case: Any, kind: str) -> Any:
    tries = 0

    def fails(less: Any) -> bool:
        nonlocal tries
        tries += 1
        target.renew()
        finding = _finding(target, less, Figures(), None)
        return finding is not None and finding.kind == kind

    def step(now: Any) -> Iterator[Any]:
        for less in smaller(now):
            if tries >= _MOST_TRIES_TO_SHRINK:
                return
            if fails(less):
                yield less
                return

    while True:
        less = next(step(case), None)
        if less is None:
            target.renew()
            return case
        case = less


def keep(target: Target, cases: Sequence[Any]) -> int:
    """Write the inputs into the corpus that reach lines which no seed and no other one reaches."""
    folder = CORPUS / target.name
    folder.mkdir(parents=True, exist_ok=True)
    seen = Coverage()
    with seen.installed():
        target.renew()
        for case in [*target.seeds(), *corpus_of(target.name)]:
            _finding(target, case, Figures(), seen)
        room, written = _MOST_KEPT - len(list(folder.glob("*.json"))), 0
        for case in cases:
            before = len(seen.seen)
            is_good = written < room and _finding(target, case, Figures(), seen) is None
            if is_good and len(seen.seen) > before:
                write_case(target.name, case)
                written += 1
    target.renew()
    return written


def write_case(name: str, case: Any, *, found: bool = False) -> Path:
    text = json.dumps(case, indent=1, sort_keys=False) + "\n"
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    file = CORPUS / name / f"{'found-' if found else ''}{digest}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file
