"""How W&B's own tests went: read from pytest's report, kept, and drawn for the documentation."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from wandb_reasons import NOT_BUILT, explain

# So many tests of a file are named; of more, their number is told.
_NAMED = 4


@dataclass
class Score:
    """How one file of theirs went."""

    passed: int = 0
    skipped: int = 0
    failed: dict[str, str] = field(default_factory=dict)  # test → pytest's message
    texts: dict[str, str] = field(default_factory=dict)  # test → the end of pytest's text

    def reason(self, test: str) -> str:
        """Why a test failed: in our words where we know them, or else in its own."""
        message = self.failed[test]
        return explain(test, f"{message}\n{self.texts.get(test, '')}") or message


Scores = dict[str, Score]


@dataclass(frozen=True)
class _Case:
    """One test in pytest's report."""

    name: str
    place: str  # module and class, below their folder of tests
    node: str  # as pytest wants it named, below that folder; empty where it has no file
    message: str | None  # of a failure
    text: str
    is_skipped: bool


def read_report(report: Path) -> Scores:
    """Scores by file."""
    scores: Scores = {}
    for case in _cases(report):
        score = scores.setdefault(case.place, Score())
        if case.message is not None:
            score.failed[case.name] = case.message
            score.texts[case.name] = case.text[-6000:]
        elif case.is_skipped:
            score.skipped += 1
        else:
            score.passed += 1
    return dict(sorted(scores.items()))


def unexplained(report: Path) -> list[str]:
    """The tests that failed for no known reason, as pytest names them below their folder."""
    return [
        case.node
        for case in _cases(report)
        if case.node
        and case.message is not None
        and not explain(case.name, f"{case.message}\n{case.text}")
    ]


def count_second_try(scores: Scores, report: Path) -> None:
    """What failed at first and not in this report has passed."""
    for case in _cases(report):
        score = scores.get(case.place)
        if score is None or case.name not in score.failed:
            continue
        if case.message is not None:
            score.failed[case.name] = case.message
            score.texts[case.name] = case.text[-6000:]
        elif not case.is_skipped:
            del score.failed[case.name]
            score.texts.pop(case.name, None)
            score.passed += 1


def _cases(report: Path) -> Iterator[_Case]:
    for element in ElementTree.parse(report).iter("testcase"):  # noqa: S314 (pytest wrote it)
        name, place = element.get("name", "?"), element.get("classname", "")
        # A file that could not be imported has only a name, and no test that could be tried again.
        file = element.get("file", "").removeprefix("tests/system_tests/") if place else ""
        place = (place or name).removeprefix("tests.system_tests.")
        kind = place.removeprefix(file.removesuffix(".py").replace("/", ".")).strip(".")
        node = "::".join(filter(None, (file, kind.replace(".", "::"), name))) if file else ""
        trouble = element.find("failure")
        if trouble is None:
            trouble = element.find("error")
        yield _Case(
            name,
            place,
            node,
            None if trouble is None else _message(trouble),
            "" if trouble is None else trouble.text or "",
            element.find("skipped") is not None,
        )


def _message(trouble: ElementTree.Element) -> str:
    message = (trouble.get("message") or "").strip()
    if message == "collection failure":
        message = ((trouble.text or "").strip().splitlines() or [message])[-1].lstrip("E ")
    lines = (message or trouble.text or "?").strip().splitlines()
    text = " ".join(line.strip() for line in lines[:3])[:300]
    # Addresses and the tests' users differ from run to run.
    text = re.sub(r"0x[0-9a-f]{6,}", "0x…", text)
    return re.sub(r"\b(user|team|org)([_-]\w+)-[0-9a-z]{12,40}\b", r"\1\2-…", text)


def write_result(results: Path, group: str, scores: Scores) -> None:
    results.mkdir(parents=True, exist_ok=True)
    text = json.dumps({place: asdict(score) for place, score in scores.items()}, indent=1)
    (results / f"{group}.json").write_text(text)


def read_results(results: Path) -> dict[str, Scores]:
    """Scores by group, as far as the groups were run."""
    return {
        path.stem: {name: Score(**score) for name, score in json.loads(path.read_text()).items()}
        for path in sorted(results.glob("*.json"))
    }


def describe(scores: Scores) -> list[str]:
    lines = []
    for place, score in scores.items():
        count = score.passed + len(score.failed)
        lines.append(f"{place:<40} {score.passed:>4} of {count}, {score.skipped} skipped")
        lines += [f"    {test}: {score.reason(test)}" for test in score.failed]
    passed, count, _ = total(scores)
    return [*lines, f"{'together':<40} {passed:>4} of {count}"]


def total(scores: Scores) -> tuple[int, int, int]:
    """How many passed, of how many, and how many were skipped."""
    passed = sum(score.passed for score in scores.values())
    failed = sum(len(score.failed) for score in scores.values())
    return passed, passed + failed, sum(score.skipped for score in scores.values())


def table(client: str, tests: str, results: dict[str, Scores]) -> str:
    """The score as a section of the page."""
    totals = {group: total(scores) for group, scores in results.items()}
    passed, count = _sum(totals[group] for group in totals if group not in NOT_BUILT)
    all_passed, all_count = _sum(totals.values())
    lines = [
        f"The tests of {tests} with the client's release {client}: **{passed} of {count}** pass "
        f"outside of what is not built ({_names(NOT_BUILT)}), {all_passed} of {all_count} in all.",
        "",
        "| group | passed | of | skipped by itself |",
        "| --- | ---: | ---: | ---: |",
    ]
    for group, (passed, count, skipped) in totals.items():
        lines.append(f"| `{group}` | {passed} | {count} | {skipped} |")
    notes = [f"- `{group}`: {reason}" for group, reason in NOT_BUILT.items() if group in results]
    notes += _notes(scores for group, scores in results.items() if group not in NOT_BUILT)
    if notes:
        lines += ["", "What fails, in our words or the test's own:", "", *notes]
    return "\n".join(lines)


def _notes(groups: Iterable[Scores]) -> list[str]:
    """Each reason once, with the files and tests that fail for it; the most frequent one first."""
    tests: dict[str, dict[str, list[str]]] = {}
    for scores in groups:
        for place, score in scores.items():
            for test in score.failed:
                tests.setdefault(score.reason(test), {}).setdefault(place, []).append(test)
    counts = {reason: sum(map(len, places.values())) for reason, places in tests.items()}
    return [
        f"- {counts[reason]}: {reason} ("
        + "; ".join(f"`{place}`: {_tests(tests[reason][place])}" for place in tests[reason])
        + ")"
        for reason in sorted(tests, key=lambda reason: -counts[reason])
    ]


def _tests(names: list[str]) -> str:
    """The tests of a file without their parameters, or how many they are."""
    short = list(dict.fromkeys(name.partition("[")[0] for name in names))
    return _names(short) if len(short) <= _NAMED else f"{len(names)} tests"


def _sum(totals: Iterable[tuple[int, int, int]]) -> tuple[int, int]:
    known = list(totals)
    return sum(passed for passed, _, _ in known), sum(count for _, count, _ in known)


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
