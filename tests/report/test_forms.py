"""A report in every form: what it says, and that no name breaks it."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from runyard.errors import RunyardError, UsageError
from runyard.report.drawing.scales import scale_of
from runyard.report.drawing.svg import svg
from runyard.report.efficiency import use_of
from runyard.report.failures import failures
from runyard.report.files import PLOTS, check_output, write
from runyard.report.findings import Group, Outcome
from runyard.report.forms.latex import latex, plain
from runyard.report.forms.markdown import markdown
from runyard.report.forms.page import page
from runyard.report.forms.text import text
from runyard.report.plots import pictures
from runyard.report.settings import Aim, ranked, settings_of
from tests.report.example import (
    HOUR,
    accounted,
    columns,
    importance,
    job,
    report,
    sweep,
    trial,
    worker,
)

HOSTILE = "<script>alert('1')</script> & | _x_ $y$ {z} \\ 100% \x07 ünï"


def test_the_terminal_has_all_of_it_in_80_columns() -> None:
    shown = text(report())
    assert max(len(line) for line in shown.splitlines()) < 80
    assert "core-hours wasted      13.4 of 16.0" in shown
    assert "- ask --memory 6G instead of 32G" in shown
    assert re.search(r"CPU +8 cores +1.3 busy +16 %", shown)
    assert re.search(r"1 +run00007 +1 +0.7", shown)
    assert "The parameters explain 70 % of how loss differs over 12 trials" in shown
    assert "the best came as number 7 of 12" in shown
    assert "Nothing failed" in shown


def test_wide_tables_go_on_below_their_rows() -> None:
    wide = {f"a_rather_long_parameter_{n}": 0.123456 + n for n in range(12)}
    shown = text(report([trial(n, float(n), values={"lr": 1.0, **wide}) for n in range(1, 4)]))
    assert max(len(line) for line in shown.splitlines()) < 80
    assert "a_rather_long_parameter_11=11.12" in shown


def test_a_page_is_one_file_that_asks_for_nothing() -> None:
    made = page(report())
    assert not re.search(
        r"""(?:src|href)\s*=|url\(|@import|https?://(?!www\.w3\.org/2000/svg")""", made
    )
    assert made.count("<svg") == len(pictures(report()))
    numbers = re.search(r'<script type="application/json" id="report">(.*?)</script>', made, re.S)
    assert numbers is not None
    assert json.loads(numbers[1])["hours"]["cpu_held"] == 16


def test_no_name_breaks_any_form() -> None:
    trials = [trial(n, float(n), name=HOSTILE, values={HOSTILE: HOSTILE, "lr": 0.1})
              for n in range(1, 13)]  # fmt: skip
    odd = report(trials, title=HOSTILE, about=[HOSTILE], notes=[HOSTILE])
    assert "<script>alert" not in page(odd)
    for picture in pictures(odd):
        ET.fromstring(svg(picture))
        ET.fromstring(svg(picture, styled=True))
    tables = latex(odd)
    assert r"\$y\$ \{z\} \textbackslash{} 100\%" in tables
    assert "\x07" not in tables + markdown(odd)
    rows = [line for line in markdown(odd).splitlines() if line.startswith("| 1 ")]
    assert rows
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 6 for row in rows)


def test_what_tex_would_take_for_its_own_is_marked() -> None:
    assert plain("a_b & 5% ± 1") == r"a\_b \& 5\% $\pm$ 1"
    made = latex(report())
    assert made.count(r"\begin{table}") == made.count(r"\end{table}") == made.count(r"\toprule")
    assert r"\label{tab:best}" in made


def test_seeds_are_a_mean_and_a_deviation() -> None:
    aims = [Aim("loss", maximize=False)]
    trials = [trial(n, 1.0 + n % 2 + n / 100, values={"lr": n % 2, "seed": n // 2})
              for n in range(1, 9)]  # fmt: skip
    settings = ranked(settings_of(trials, aims, "seed"), aims)
    outcome = Outcome(sweep(trials), trials, aims, settings, columns(trials), importance())
    shown = text(report(outcomes=[outcome]))
    assert "1.05 ± 0.026" in shown
    assert "over seeds" in shown
    assert "seeds" in {one.name for one in pictures(report(outcomes=[outcome]))}


def test_a_table_of_numbers_has_a_row_a_trial(tmp_path: Path) -> None:
    rows = [{"run": "a", "name": "a", "project": "p", "config.lr": 0.1, "loss": 1.0}]
    [file] = write(report(tries=rows), tmp_path / "trials.csv")
    [row] = csv.DictReader(io.StringIO(file.read_text()))
    assert (row["run"], row["config.lr"], row["loss"]) == ("a", "0.1", "1.0")


FORMULA = "=cmd|' /C calc'!A1"


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        *((text, f"'{text}") for text in (FORMULA, "+1+1", "-lr 0.1", "@SUM(A1)", "\t=1", "\r=1")),
        ("-", "'-"),
        *((text, text) for text in ("-1", "+1.5e-07", "-.5", "-inf", "-Infinity", "a=b", "'=1")),
        ("a\r=1", "a\r=1"),
        (-1, "-1"),
        (-1e-07, "-1e-07"),
        (float("-inf"), "-inf"),
        (["=1"], '["=1"]'),
        (None, ""),
    ],
)
def test_no_cell_of_a_table_is_a_formula(tmp_path: Path, value: object, cell: str) -> None:
    rows = [{"run": "a", "name": value, "project": "p", FORMULA: 1.0}]
    [file] = write(report(tries=rows), tmp_path / "trials.csv")
    text = file.read_bytes().decode()
    [row] = csv.DictReader(io.StringIO(text, newline=""))
    assert row == {"run": "a", "name": cell, "project": "p", f"'{FORMULA}": "1.0"}
    assert not text.replace(f'"{cell}"', "").count("\r")


def test_a_folder_holds_every_form(tmp_path: Path) -> None:
    written = {str(one.relative_to(tmp_path)) for one in write(report(), tmp_path / "out")}
    assert written >= {f"out/report.{end}" for end in ("html", "md", "tex", "txt", "json")}
    assert {"out/trials.csv", "out/plots/convergence.png", "out/plots/slices.svg"} <= written
    assert "plots/convergence.svg" in (tmp_path / "out/report.md").read_text()
    assert not list(tmp_path.rglob(".*"))


def test_pictures_alone_or_all_in_one(tmp_path: Path) -> None:
    [one] = write(report(), tmp_path / "one.png", "convergence")
    [every] = write(report(), tmp_path / "all.png")
    with Image.open(one) as small, Image.open(every) as large:
        assert small.width == large.width > 1000
        assert large.height > 3 * small.height
        colours = small.convert("RGB").getcolors(1 << 24)
    assert colours is not None
    # A picture with something on it: the line of the best so far.
    assert (47, 75, 208) in {colour for _, colour in colours}


@pytest.mark.parametrize(
    ("target", "plot", "said"),
    [
        ("report.docx", None, "does not say which form"),
        ("report.html", "hours", "--plot is for pictures"),
        ("a.svg", "pie", "convergence"),
    ],
)
def test_what_cannot_be_written_is_said_before(target: str, plot: str | None, said: str) -> None:
    with pytest.raises(UsageError) as error:
        check_output(Path(target), plot)
    assert said in f"{error.value.what} {error.value.mend}"


def test_without_pillow_the_extra_is_named(monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(RunyardError) as error:
        check_output(Path("a.png"), None)
    assert "pip install 'runyard[plots]'" in (error.value.mend or "")
    written = list(write(report(), tmp_path / "out"))
    assert not any(one.suffix == ".png" for one in written)
    assert any(one.suffix == ".svg" for one in written)


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(RunyardError, match="cannot be written") as error:
        list(write(report(), tmp_path / "nowhere" / "report.html"))
    assert error.value.said == "No such file or directory"


def test_a_report_of_nothing_says_so_in_every_form(tmp_path: Path) -> None:
    empty = report(groups=[], outcomes=[Outcome(sweep([], state="running"), [])], is_open=True,
                   notes=["Still running"])  # fmt: skip
    shown = text(empty)
    assert "Nothing was measured yet" in shown
    assert "Still running" in page(empty) + markdown(empty)
    with pytest.raises(RunyardError, match="nothing to draw yet"):
        list(write(empty, tmp_path / "a.svg"))


def test_a_job_without_trials_is_told_by_how_it_ended() -> None:
    shown = text(report(kind="job", outcomes=[], about=["out of time"]))
    assert "out of time" in shown
    assert "No trial of a sweep ran in it" in shown
    assert "Nothing failed" not in shown


def test_every_plot_that_can_be_named_is_drawn_somewhere() -> None:
    aims = [Aim("loss", maximize=False), Aim("speed", maximize=True)]
    trials = [trial(n, float(n), metrics={"loss": float(n), "speed": n * 2.0}) for n in range(1, 9)]
    table = columns(trials)
    table["measured"]["speed"] = [n * 2.0 for n in range(1, 9)]
    table["front"] = [1, 2, 8]
    two = Outcome(sweep(trials), trials, aims, [], table, importance())
    seeds = settings_of(trials, aims[:1], "lr")
    several = Outcome(sweep(trials), trials, aims[:1], seeds, table, importance())
    lost = failures([trial(n, None, "failed", cause=f"cause {n}") for n in (1, 2)], [], {})
    drawn = {
        one.name
        for outcome in (two, several)
        for one in pictures(report(outcomes=[outcome], failures=lost))
    }
    assert drawn == set(PLOTS)


def test_a_few_that_lie_far_out_do_not_press_the_others_together() -> None:
    scale = scale_of([1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 90.0], 100, 0)
    assert scale.high < 10
    assert not scale.holds(90.0)
    assert scale(90.0) == 0
    assert scale_of([0.001, 0.1, 5.0], 0, 1).is_log
    ticks = [words for _, words in scale_of([0.0, 10.0], 0, 1).ticks()]
    assert ticks == ["0", "2.5", "5", "7.5", "10"]


def test_jobs_that_asked_differently_have_a_table_each() -> None:
    jobs = [job(used=accounted()), job(key=2, job_id="4022", asked={"cpus": 2, "memory": 1024})]
    uses = [use_of(one, [worker()], [], now=2 * HOUR) for one in jobs]
    groups = [Group([one], [use], []) for one, use in zip(jobs, uses, strict=True)]
    shown = text(report(groups=groups))
    assert "job 4021" in shown
    assert "job 4022" in shown
