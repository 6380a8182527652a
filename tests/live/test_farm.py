"""`runyard farm`: lists of command lines, with real processes and GNU parallel beside them."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runyard.actions.sweeping.job_log import read_job_log
from runyard.client.job_log import COLUMNS
from runyard.home import Home
from tests.conftest import run_runyard
from tests.live.sweeping import api_of, processes_of
from tests.node.terminals import PATIENCE, until
from tests.packages import require

pytestmark = pytest.mark.live

LONG = 120.0  # A guard against a hang, never a measure.
# Three of thirty fail, as long as there is no file that lets them pass.
THIRTY = "".join(
    f"echo 'line  {number}' --x {number}; "
    + ("test -e mended\n" if number in (4, 17, 30) else ":\n")
    for number in range(1, 31)
)


@pytest.fixture(autouse=True)
def _one_server(module_home: Home) -> None:
    """All tests of this module share a server, and have projects of their own."""


@contextlib.contextmanager
def begun(*words: str, cwd: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A command in the background, which does not outlive the test; its agent ends with it."""
    command = [sys.executable, "-m", "runyard", *words]
    nowhere = subprocess.DEVNULL
    with subprocess.Popen(command, cwd=cwd, stdout=nowhere, stderr=nowhere) as process:
        try:
            yield process
        finally:
            process.kill()


def newest(home: Home) -> dict[str, Any]:
    return dict(api_of(home).sweeps.sweeps(limit=1)[0])


def test_thirty_lines_are_logged_as_gnu_parallel_logs_them(
    module_home: Home, tmp_path: Path
) -> None:
    (tmp_path / "tasks.txt").write_text(THIRTY)
    ended = run_runyard("farm", "tasks.txt", "-j", "4", cwd=tmp_path, timeout=LONG)
    assert ended.returncode == 3, ended.stderr
    sweep = newest(module_home)
    log = tmp_path / "sweeps" / sweep["id"] / "joblog"
    ours = log.read_text().splitlines()
    assert ours[0].split("\t") == list(COLUMNS)
    assert len(ours) == 31
    assert {n for n, row in read_job_log(log).items() if not row.is_good} == {4, 17, 30}

    # What they print is shown as it comes, each line with its task, and kept in a file of its own.
    trials = {one["values"]["task"]: one for one in api_of(module_home).sweeps.trials(sweep["key"])}
    assert f"{trials[7]['name']}\tline  7 --x 7\n" in ended.stdout
    assert trials[7]["name"] == "x7"
    file = tmp_path / "sweeps" / sweep["id"] / "x7" / "output.log"
    assert file.read_text() == "line  7 --x 7\n"
    run = api_of(module_home).run(trials[7]["id"])
    assert (run["state"], run["exit_code"], run["config"]["x"]) == ("finished", 0, 7)
    assert api_of(module_home).console(run)["text"] == "line  7 --x 7\n"

    # The three that failed run again, and they alone.
    (tmp_path / "mended").touch()
    again = run_runyard("retry", sweep["id"], "-j", "3", cwd=tmp_path, timeout=LONG)
    assert again.returncode == 0, again.stderr
    assert again.stdout.count("line  ") == 3
    after = log.read_text().splitlines()
    assert sorted(int(line.split("\t")[0]) for line in after[31:]) == [4, 17, 30]
    assert all(row.is_good for row in read_job_log(log).values())
    assert newest(module_home)["counts"]["finished"] == 30
    assert "has failed" in run_runyard("retry", sweep["id"]).stderr

    require("parallel")
    (tmp_path / "mended").unlink()
    theirs = subprocess.run(
        ["parallel", "-j4", "--joblog", "theirs"],
        cwd=tmp_path, input=THIRTY, text=True, capture_output=True, check=False,
    )  # fmt: skip
    assert theirs.returncode == 3
    rows = (tmp_path / "theirs").read_text().splitlines()
    assert rows[0] == ours[0]

    def told(lines: list[str]) -> dict[str, list[str]]:
        # All but where and when.
        cells = [line.split("\t") for line in lines[1:]]
        return {one[0]: one[4:] for one in cells}

    assert told(ours) == told(rows)


# Notes how many run now, itself among them, and waits to be let go.
COUNTED = (
    "mkdir at.{0}; ls -d at.* | wc -l >> counts; "
    "until test -e go; do sleep 0.05; done; rmdir at.{0}\n"
)


def test_all_lines_run_and_four_at_a_time(module_home: Home, tmp_path: Path) -> None:
    (tmp_path / "tasks.txt").write_text("".join(COUNTED.format(one) for one in range(10)))
    with begun("farm", "tasks.txt", "-j", "4", cwd=tmp_path) as farm:
        counts = tmp_path / "counts"
        until(lambda: counts.exists() and len(counts.read_text().split()) == 4, "four lines")
        # The fifth waits although nobody has ended: the server has handed out four.
        told = newest(module_home)["counts"]
        assert told["running"] == 4
        (tmp_path / "go").touch()
        assert farm.wait(PATIENCE) == 0
    seen = [int(word) for word in counts.read_text().split()]
    assert len(seen) == 10
    assert max(seen) == 4
    assert newest(module_home)["counts"]["finished"] == 10


def test_output_is_shown_at_once_and_not_when_a_line_ends(
    module_home: Home, tmp_path: Path
) -> None:
    """As with GNU parallel's -u; but each line is marked, and in a file of its own as well."""
    wait = "until test -e go; do sleep 0.05; done"
    (tmp_path / "tasks.txt").write_text(
        f"echo begun --x 1; {wait}; echo ended\necho trouble --x 2 >&2; {wait}\n"
    )
    shown = tmp_path / "shown"
    with shown.open("w") as into, subprocess.Popen(
        [sys.executable, "-m", "runyard", "farm", "tasks.txt", "-j", "2"],
        cwd=tmp_path, stdout=into, stderr=subprocess.DEVNULL,
    ) as farm:  # fmt: skip
        try:
            both = ["x1\tbegun --x 1", "x2\ttrouble --x 2"]
            until(lambda: sorted(shown.read_text().splitlines()) == both, "both lines")
            folder = tmp_path / "sweeps" / newest(module_home)["id"]
            until(lambda: (folder / "x1" / "output.log").read_text() == "begun --x 1\n", "x1")
            until(lambda: (folder / "x2" / "output.log").read_text() == "trouble --x 2\n", "x2")
            assert newest(module_home)["counts"]["running"] == 2
        finally:
            (tmp_path / "go").touch()
            code = farm.wait(PATIENCE)
        assert code == 0
    assert "x1\tended\n" in shown.read_text()


def test_a_log_of_gnu_parallel_is_gone_on_with(module_home: Home, tmp_path: Path) -> None:
    (tmp_path / "tasks.txt").write_text(
        "# three of four have run\n\necho a >> said\nfalse || test -e mended\necho c >> said\n"
        "echo d >> said\n"
    )
    (tmp_path / "log").write_text(
        "\t".join(COLUMNS) + "\n"
        "3\t:\t1794727283.395\t     0.010\t0\t2\t0\t0\techo a >> said\n"
        "5\t:\t1794727283.495\t     0.010\t0\t2\t0\t9\techo c >> said\n"
        "4\t:\t1794727283.405\t     0.010\t0\t0\t1\t0\tfalse || test -e mended\n"
    )
    words = ("farm", "tasks.txt", "--joblog", "log")
    taken = run_runyard(*words, cwd=tmp_path)
    assert taken.returncode == 2
    assert "--resume" in taken.stderr
    (tmp_path / "mended").touch()
    gone_on = run_runyard(*words, "--resume-failed", "-j", "2", cwd=tmp_path, timeout=LONG)
    assert gone_on.returncode == 0, gone_on.stderr
    assert sorted((tmp_path / "said").read_text().split()) == ["c", "d"]
    assert all(row.is_good for row in read_job_log(tmp_path / "log").values())
    assert "nothing is left" in run_runyard(*words, "--resume", cwd=tmp_path).stderr

    (tmp_path / "tasks.txt").write_text("echo another\n")
    other = run_runyard(*words, "--resume", cwd=tmp_path)
    assert other.returncode == 2
    assert "about something else" in other.stderr


def test_two_launches_do_not_write_one_log(module_home: Home, tmp_path: Path) -> None:
    (tmp_path / "tasks.txt").write_text("until test -e go; do sleep 0.05; done\n")
    log = tmp_path / "log"
    words = ("farm", "tasks.txt", "--joblog", "log")
    with begun(*words, cwd=tmp_path) as first:
        until(lambda: log.exists() and log.stat().st_size > 0, "the log")
        second = run_runyard(*words, "--resume", cwd=tmp_path)
        (tmp_path / "go").touch()
        assert second.returncode == 2
        assert "another command writes to the job log" in second.stderr
        assert first.wait(PATIENCE) == 0


def test_lines_are_the_shells_and_have_its_environment(module_home: Home, tmp_path: Path) -> None:
    lines = [
        "printf '%s|' \"$VIRTUAL_ENV\" 'a  b' \"$(pwd)\"; echo",
        "exit 7  # a comment behind it",
        "kill -TERM $$",
        "echo -n no end of line",
        "no-such-program --at-all",
    ]
    text = "\r\n".join(lines)
    ended = run_runyard(
        "farm", "-", "--json", "-j", "2", cwd=tmp_path, stdin=text, timeout=LONG,
        env={"VIRTUAL_ENV": "/opt/my env"},
    )  # fmt: skip
    assert ended.returncode == 3, ended.stderr
    told = json.loads(ended.stdout)
    assert told["counts"]["failed"] == 3
    assert f"line1\t/opt/my env|a  b|{tmp_path}|\n" in ended.stderr
    assert "line4\tno end of line\n" in ended.stderr
    rows = read_job_log(tmp_path / "sweeps" / told["id"] / "joblog")
    assert {n: (row.exit_value, row.signal) for n, row in rows.items()} == {
        1: (0, 0), 2: (7, 0), 3: (0, 15), 4: (0, 0), 5: (127, 0)
    }  # fmt: skip
    assert "not found" in " ".join(one["why"] for one in told["failures"])


def test_a_grid_of_a_line_with_braces(module_home: Home, tmp_path: Path) -> None:
    words = ("farm", "--grid", "echo $((10 * {1,2})) --seed {1..3}")
    shown = run_runyard(*words, "--dry-run", cwd=tmp_path)
    assert "6 command lines" in shown.stdout
    assert "3 seeds tell little" in shown.stderr
    assert len(json.loads(run_runyard(*words, "--dry-run", "--json", cwd=tmp_path).stdout)) == 6
    ended = run_runyard(*words, "-j", "3", "-q", cwd=tmp_path, timeout=LONG)
    assert ended.returncode == 0, ended.stderr
    sweep = newest(module_home)
    logs = (tmp_path / "sweeps" / sweep["id"]).glob("*/output.log")
    assert not list(logs), "quiet shows and writes nothing"
    trials = api_of(module_home).sweeps.trials(sweep["key"])
    assert sorted(trial["values"]["seed"] for trial in trials) == [1, 1, 2, 2, 3, 3]
    assert len({trial["name"] for trial in trials}) == 6


def test_lines_that_fit_a_gpu_together_are_one_file(module_home: Home, tmp_path: Path) -> None:
    """As the gauge has kept it of their kinds; a p100 has 12 GB in this profile."""
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "old.yaml").write_text("gpus: {types: {p100: {memory_gb: 12}}}\n")
    clusters = {"RUNYARD_CLUSTERS": str(tmp_path / "profiles"), "RUNYARD_CLUSTER": "old"}
    project = tmp_path / "packing"
    project.mkdir()
    (project / "tasks.txt").write_text(
        "".join(f"python {name}.py --seed {seed}\n" for seed in (1, 2) for name in ("big", "small"))
    )
    words = ("farm", "tasks.txt", "--split", "fit", "--gpu-type", "p100")
    unknown = run_runyard(*words, cwd=project, env=clusters)
    assert unknown.returncode == 2
    assert "how much GPU memory big.py needs is not known" in unknown.stderr
    figures = api_of(module_home).figures
    figures.add("packing", "big.py", "P100", {"vram_peak": 6_900_000_000})
    figures.add("packing", "small.py", "P100", {"vram_peak": 1_500_000_000})
    done = run_runyard(*words, cwd=project, env=clusters)
    assert done.returncode == 0, done.stderr
    files = [file.read_text() for file in sorted((project / "tasks").iterdir())]
    assert files == [
        "python big.py --seed 1\npython small.py --seed 1\n",
        "python big.py --seed 2\npython small.py --seed 2\n",
    ]
    assert "9.7 of 12.0 GB:  runyard farm tasks/tasks_0.txt --per-gpu 2" in done.stderr
    figures.add("packing", "big.py", "P100", {"vram_peak": 13_000_000_000})
    large = run_runyard(*words, cwd=project, env=clusters)
    assert large.returncode == 2
    assert "big.py took 13.0 GB of GPU memory, and a GPU has 12.0 GB" in large.stderr


def test_a_list_ends_when_enough_have_failed(module_home: Home, tmp_path: Path) -> None:
    lines = ["false", "false", *["sleep 0.4"] * 40]
    (tmp_path / "tasks.txt").write_text("\n".join(lines))
    ended = run_runyard("farm", "tasks.txt", "--halt", "now,fail=2", cwd=tmp_path, timeout=LONG)
    assert ended.returncode == 2
    assert "no more begin" in ended.stderr
    counts = newest(module_home)["counts"]
    assert counts["failed"] == 2
    assert counts["finished"] < 40


def test_one_that_fails_is_tried_again_if_asked(module_home: Home, tmp_path: Path) -> None:
    (tmp_path / "tasks.txt").write_text("echo x >> tries; test $(wc -l < tries) -ge 3\n")
    ended = run_runyard("farm", "tasks.txt", "--retries", "2", cwd=tmp_path, timeout=LONG)
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "tries").read_text().count("x") == 3


def test_cut_off_it_goes_on_with_what_is_left(module_home: Home, tmp_path: Path) -> None:
    (tmp_path / "tasks.txt").write_text("echo a >> said\nuntil test -e go; do sleep 0.05; done\n"
                                        "echo c >> said\n")  # fmt: skip
    with begun("farm", "tasks.txt", cwd=tmp_path) as cut:
        until(lambda: processes_of(module_home, "test -e go"), "the second line")
        cut.send_signal(signal.SIGINT)
        assert cut.wait(PATIENCE) == 128 + signal.SIGINT
    assert not processes_of(module_home, "test -e go")
    (tmp_path / "go").touch()
    sweep = newest(module_home)
    gone_on = run_runyard("sweep", sweep["id"], cwd=tmp_path, timeout=LONG)
    assert gone_on.returncode == 0, gone_on.stderr
    assert (tmp_path / "said").read_text() == "a\nc\n"
    rows = read_job_log(tmp_path / "sweeps" / sweep["id"] / "joblog")
    assert sorted(rows) == [1, 2, 3]


def test_mistakes_are_told_before_anything_is_made(module_home: Home, tmp_path: Path) -> None:
    for words, part in (
        (("farm",), "standard input holds no command line"),
        (("farm", "no.txt"), "there is no file no.txt"),
        (("farm", "--grid", "echo {1..9}", "--resume"), "--joblog FILE names it"),
        (("farm", "--grid", "echo", "--halt", "often"), "soon,fail=N"),
        (("farm", "--grid", "echo", "--joblog", "."), "is a folder"),
        (("retry", "no-such-sweep"), "no-such-sweep"),
    ):
        refused = run_runyard(*words, cwd=tmp_path)
        assert refused.returncode in (1, 2)
        assert part in refused.stderr
        assert "try:" in refused.stderr
