"""`runs`, `show` and `logs` on a handful of runs that were really run."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import Any

import pytest

from runyard.cli.watching.show import summary_text
from runyard.home import Home
from tests.conftest import run_runyard
from tests.node.terminals import RUNYARD, Terminal

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("yard")]

PRINTED = "first\n1%\r2%\r3%\nthird é∞\nfourth"


@dataclass(frozen=True)
class Yard:
    """The runs of this module, by name: two in one project, one in another."""

    good: str
    bad: str


@pytest.fixture(scope="module")
def yard(module_home: Home) -> Yard:
    _run("abc1", "-P", "one", "-e", "good", "--tag", "a", "--tag", "b c", "--notes", "a note",
         "printf", "%s", PRINTED)  # fmt: skip
    _run("abd2", "-P", "one", "-e", "bad", "sh", "-c", "exit 3")
    _run("abc3", "-P", "two", "-e", "good", "--group", "group é", "true")
    return Yard("abc1", "abd2")


def _run(run_id: str, *words: str) -> None:
    run_runyard("run", "-q", *words, env={"WANDB_RUN_ID": run_id})


def _json(*words: str) -> Any:
    done = run_runyard(*words, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_runs_lists_the_newest_first() -> None:
    lines = run_runyard("runs").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["ID", "abc3", "abd2", "abc1"]
    assert lines[1].split()[1:4] == ["good", "two", "finished"]
    assert lines[2].split()[1:4] == ["bad", "one", "failed"]


def test_runs_as_data() -> None:
    runs = _json("runs")
    assert [run["id"] for run in runs] == ["abc3", "abd2", "abc1"]
    first = runs[-1]
    assert (
        first.items()
        >= {
            "id": "abc1",
            "name": "good",
            "project": "one",
            "state": "finished",
            "exit_code": 0,
            "config": {},
            "summary": {},
            "tags": ["a", "b c"],
            "notes": "a note",
            "command": ["printf", "%s", PRINTED],
        }.items()
    )
    assert runs[1]["exit_code"] == 3
    assert runs[0]["group"] == "group é"


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        ("-P one", ["abd2", "abc1"]),
        ("--state failed", ["abd2"]),
        ("-P two --state failed", []),
        ("-l 1", ["abc3"]),
        ("-l 2 --all", ["abc3", "abd2", "abc1"]),
        ("-l 0", []),
        ("-P nowhere", []),
    ],
)
def test_runs_are_chosen(words: str, ids: list[str]) -> None:
    assert [run["id"] for run in _json("runs", *words.split())] == ids
    shown = run_runyard("runs", *words.split())
    assert shown.returncode == 0
    assert [line.split()[0] for line in shown.stdout.splitlines()[1:]] == ids
    assert ("there are more" in shown.stderr) == (words in ("-l 1", "-l 0"))
    assert ("no such runs" in shown.stderr) == (not ids and words != "-l 0")


@pytest.mark.parametrize(
    ("words", "found"),
    [("abd2", "abd2"), ("abd", "abd2"), ("bad", "abd2"), ("one/abc1", "abc1"), ("one/good", "abc1"),
     ("two/ab", "abc3"), ("", "abc3")],
)  # fmt: skip
def test_a_run_is_found_by_id_prefix_name_or_project(words: str, found: str) -> None:
    assert _json("show", *words.split())["id"] == found


@pytest.mark.parametrize("command", ["show", "logs"])
@pytest.mark.parametrize("words", ["ab", "good"])
def test_words_that_mean_several_runs_name_them(command: str, words: str) -> None:
    done = run_runyard(command, words)
    assert done.returncode == 1
    assert f"'{words}' is more than one run" in done.stderr
    assert "one/abc1" in done.stderr
    assert "two/abc3" in done.stderr


@pytest.mark.parametrize("command", ["show", "logs"])
@pytest.mark.parametrize("words", ["nothing", "three/abc1", "/", "é", "%_"])
def test_a_run_that_is_not_there(command: str, words: str) -> None:
    done = run_runyard(command, words)
    assert done.returncode == 1
    what = "run" if command == "show" else "sweep, trial or job"
    assert done.stderr.startswith(f"runyard: there is no {what} '{words}'")
    assert "try:  `runyard runs` and `runyard runs --sweeps` list what there is" in done.stderr


def test_show_tells_what_is_known() -> None:
    shown = run_runyard("show", "abc1").stdout
    assert shown.startswith("one/good  abc1  finished (exit code 0)\n")
    for fact in ("printf %s 'first", "tags: a, b c", "notes: a note", "took "):
        assert fact in shown


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"_type": "histogram", "bins": [-1.0, 0.0, 1.5], "values": [3, 4]},
         "histogram, 2 bins from -1 to 1.5"),
        ({"_type": "histogram", "values": [3], "packedBins": {"min": 0, "size": 1, "count": 1}},
         "histogram"),
        ({"_type": "graph-file", "path": "media/graph/graph_0.json", "size": 533},
         "graph-file, media/graph/graph_0.json"),
        ({"min": 0.5}, '{"min": 0.5}'),
        (0.123456, "0.1235"),
    ],
)  # fmt: skip
def test_media_in_the_summary_take_a_line_each(value: Any, text: str) -> None:
    """`wandb.watch` leaves a histogram for each layer there."""
    assert summary_text(value) == text


def test_logs_print_what_the_run_printed() -> None:
    for options, last in (
        ([], PRINTED),
        (["-f"], PRINTED),
        (["-l", "3"], PRINTED.split("\n", 1)[1]),
        (["-l", "1"], "fourth"),
        (["-l", "0"], ""),
    ):
        logs = [*RUNYARD, "logs", "abc1", *options]
        assert subprocess.run(logs, capture_output=True, check=True).stdout == last.encode()


@pytest.mark.parametrize(
    "words", ["runs", "show abc1", "runs --json", "--help", "run --help", "-V"]
)
def test_a_reader_that_leaves_hears_no_complaint(words: str) -> None:
    script = '"$@" | { sleep 0.01; head -c 1 > /dev/null; }'
    done = subprocess.run(
        ["sh", "-c", script, "-", *RUNYARD, *words.split()], capture_output=True, check=False
    )
    assert done.stderr == b""


def test_a_full_disk_behind_our_output_is_told() -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123
        for words in (["runs"], ["--help"], ["logs", "abc1"]):
            done = subprocess.run(
                [*RUNYARD, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False
            )
            assert done.returncode == 1
            assert "No space left on device" in done.stderr
            assert "Traceback" not in done.stderr
            assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize(
    "environment",
    [{"LC_ALL": "C"}, {"PYTHONIOENCODING": "ascii"}, {"PYTHONUTF8": "0", "LANG": "C"}],
)
@pytest.mark.parametrize(
    "words", ["runs", "runs --json", "show two/good", "show --json", "logs abc1"]
)
def test_a_terminal_without_unicode(words: str, environment: dict[str, str]) -> None:
    done = run_runyard(*words.split(), env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    if "--json" in words:
        assert "group é" in str(json.loads(done.stdout))


def test_a_narrow_terminal_shows_whole_ids() -> None:
    with Terminal([*RUNYARD, "runs"], columns=40) as terminal:
        assert terminal.wait() == 0
        for run_id in ("abc1", "abd2", "abc3"):
            assert run_id.encode() in terminal.seen
