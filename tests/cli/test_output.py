"""How numbers, times and curves are said."""

from __future__ import annotations

import json
import math
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from rich.console import Console

from runyard.actions.watching.logs import last_lines
from runyard.cli.output import duration, number, print_json, print_table
from runyard.cli.watching import runs
from runyard.cli.watching.sparkline import sparkline, thinned

FINITE = some.floats(allow_nan=False, allow_infinity=False)
CURVES = some.lists(some.none() | FINITE, max_size=60)


@given(CURVES, some.booleans())
def test_a_curve_has_one_character_a_value_and_gaps_where_there_is_none(
    values: list[float | None], plain: bool
) -> None:
    drawn = sparkline(values, plain=plain)
    assert len(drawn) == len(values)
    assert [mark == " " for mark in drawn] == [value is None for value in values]
    assert not plain or drawn.isascii()


@given(some.lists(FINITE, min_size=2, max_size=60))
def test_a_curve_rises_and_falls_with_its_values(values: list[float]) -> None:
    drawn = sparkline(values)
    for (low, mark), (high, other) in zip(
        sorted(zip(values, drawn, strict=True)),
        sorted(zip(values, drawn, strict=True))[1:],
        strict=False,
    ):
        assert low <= high
        assert mark <= other
    if min(values) / 2 != max(values) / 2:
        assert drawn[values.index(min(values))] == "▁"
        assert drawn[values.index(max(values))] == "█"


@pytest.mark.parametrize(
    ("values", "drawn"),
    [
        ([], ""),
        ([None, None], "  "),
        ([3.0], "▄"),
        ([5.0, 5.0, 5.0], "▄▄▄"),
        ([0.0, None, 1.0], "▁ █"),
        ([-1.7e308, 1.7e308], "▁█"),
        ([0, 1, 2, 3, 4, 5, 6, 7], "▁▂▃▄▅▆▇█"),
    ],
)
def test_curves(values: list[float | None], drawn: str) -> None:
    assert sparkline(values) == drawn


@given(some.lists(FINITE, max_size=100), some.integers(1, 40))
def test_thinning_keeps_order_and_the_last_value(values: list[float], most: int) -> None:
    kept = thinned(values, most)
    assert len(kept) == min(most, len(values))
    assert kept[-1:] == values[-1:]
    rest = iter(values)
    assert all(any(one == other for other in rest) for one in kept)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0.0 s"), (9.94, "9.9 s"), (9.97, "10 s"), (59, "59 s"), (119.6, "2 min"), (120, "2 min"),
     (7199, "119 min"), (7200, "2 h 0 min"), (90_000, "25 h 0 min"), (172_800, "2 days")],
)  # fmt: skip
def test_durations(seconds: float, said: str) -> None:
    assert duration(seconds) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [(1, "1"), (123456789, "123456789"), (0.5, "0.5"), (1 / 3, "0.3333"), (1e-9, "1e-09"),
     (2.0, "2"), (True, "true"), (None, "null"), ("text", "text"), ([1, "é"], '[1, "é"]'),
     ({"a": 1}, '{"a": 1}'), (math.inf, "inf"), (math.nan, "nan")],
)  # fmt: skip
def test_numbers(value: object, said: str) -> None:
    assert number(value) == said


def test_json_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    content = {"a": [1, None, "é"]}
    print_json(content)
    assert json.loads(capsys.readouterr().out) == content


def test_a_table_shows_markup_and_emoji_codes_as_they_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_table(("ID", "LAST"), [("[bold]x[/bold]", ":smile: [1]")])
    shown = capsys.readouterr().out
    assert "[bold]x[/bold]" in shown
    assert ":smile: [1]" in shown


@pytest.mark.parametrize(
    ("text", "lines", "last"),
    [
        ("a\nb\nc\n", 2, "b\nc\n"),
        ("a\nb\nc", 2, "b\nc"),
        ("a\nb\n", 9, "a\nb\n"),
        ("a\nb\n", 0, ""),
        ("", 3, ""),
        ("1%\r2%\r3%\ndone\n", 2, "1%\r2%\r3%\ndone\n"),
        ("\n\n\n", 2, "\n\n"),
    ],
)
def test_the_last_lines(text: str, lines: int, last: str) -> None:
    assert last_lines(text, lines) == last


def test_in_a_narrow_terminal_the_longest_texts_are_cut(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("runyard.cli.output.console", lambda: Console(width=40))
    print_table(("ID", "NAME", "STATE", "SUMMARY"), [("a1b2c3d4", "x" * 50, "finished", "loss=1")])
    header, row = capsys.readouterr().out.splitlines()
    assert header.split() == ["ID", "NAME", "STATE"]
    assert row.split()[0::2] == ["a1b2c3d4", "finished"]
    assert len(row) <= 40


def test_a_list_of_runs_fits_eighty_columns_and_shows_defined_metrics_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    summary: dict[str, Any] = {f"train/part_{place}": place / 7 for place in range(20)}
    summary |= {"val/acc": {"max": 0.93125}, "zeta": 0.5, "_step": 9, "note": "text"}
    run = {"key": 8, "id": "a1b2c3d4", "name": "a-very-long-name-of-a-run-with-its-settings",
           "project": "p", "state": "finished", "created_at": time.time(),
           "started_at": 0.0, "ended_at": 60.0, "summary": summary}  # fmt: skip
    small = {**run, "id": "b2", "name": "tiny", "summary": {"loss": 0.25}}
    best = {7: {"zeta": 0.125}}
    runs._print_runs([run, small], best, is_one_project=False)  # type: ignore[list-item]
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line.rstrip()) for line in lines) <= 80
    assert "val/acc (max)=0.9313" in lines[1]
    assert lines[1].rstrip().endswith(f"+{len(summary) - 3}")
    assert lines[2].rstrip().endswith("loss=0.25")
    trial = {**small, "key": 7, "summary": summary}
    runs._print_runs([trial], best, is_one_project=True)  # type: ignore[list-item]
    assert "zeta (best)=0.125  zeta (last)=0.5" in capsys.readouterr().out


def test_a_list_of_runs_shows_whole_names_where_they_fit(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A reader copies a name from there."""
    name = "lr=0.001,depth=6,seed=12"
    run = {"key": 8, "id": "a1b2c3d4", "name": name, "project": "birds", "state": "finished",
           "created_at": time.time(), "started_at": 0.0, "ended_at": 60.0,
           "summary": {"train/loss": 0.125, "val/loss": 0.5}}  # fmt: skip
    runs._print_runs([run], {}, is_one_project=False)  # type: ignore[list-item]
    header, row = (line.rstrip() for line in capsys.readouterr().out.splitlines())
    assert row.split()[1] == name
    assert len(row) <= 80
    assert "SUMMARY" in header
