"""Looking after jobs on a real cluster, with accounting and without.

Without it test_without_accounting.py has a short form; RUNYARD_ALL_SLURM=1 tries everything.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runyard.schedulers.slurm.queue import poll
from tests.conftest import ask_runyard, run_runyard
from tests.node.terminals import RUNYARD, Terminal
from tests.slurm.test_cluster import wait_until
from tests.slurm.typed import Yard, has_accounting, open_birds, python_line

pytestmark = pytest.mark.slurm

ALL = bool(os.environ.get("RUNYARD_ALL_SLURM"))


@pytest.fixture(scope="module", params=["accounting", *(["no accounting"] if ALL else [])])
def yard(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Yard]:
    bare = request.param == "no accounting"
    cluster = request.getfixturevalue("bare_slurm_cluster" if bare else "slurm_cluster")
    with open_birds(cluster, tmp_path_factory.mktemp("a yard")) as opened:
        yield opened


def test_a_list_of_thirty_from_the_queue_to_the_retry_of_three(yard: Yard) -> None:
    task = str(yard.project / "task.py")
    lines = [python_line(task, str(number)) for number in range(1, 31)]
    sweep, job = yard.submit(
        "thirty", lines, "--agents", "6", "--at-once", "2", "--memory", "200M", "--time", "10m"
    )
    yard.wait_for(sweep, running=2)

    # While it runs: what waits, why, in plain words; by sweep, by job, by task, or all.
    [told] = yard.sweep(sweep)["jobs"]
    assert (told["job_id"], told["tasks"]) == (job, 6)
    assert told["states"] == {"RUNNING": 2, "PENDING": 4}
    assert "as many of its tasks run as the array lets at once" in told["reason_text"]
    shown = yard.read("status", job)
    assert f"job {job}  6 tasks: 2 running, 4 waiting" in shown
    assert "6 tasks" in yard.read("status")
    assert "task 1: running on n" in yard.read("status", f"{job}_1")
    assert "task 6: waiting" in yard.read("status", f"{job}_6")
    [trial] = [
        one for one in yard.json("status", sweep, "--live")["trials"] if one["name"] == "line1"
    ]
    assert trial["job"].startswith(f"{job}_")
    assert f"job {job}" in yard.read("status", trial["id"])

    (yard.project / "go").touch()
    yard.wait_for(sweep, finished=27, failed=3)
    yard.wait_for_end(job)

    # What its tasks printed, merged and labelled; and one of them.
    printed = yard.read("logs", job)
    assert len({line.partition("\t")[0] for line in printed.splitlines()}) > 1
    assert all(f"this is task {number}" in printed for number in range(1, 31))
    alone = yard.read("logs", f"{job}_1", "-l", "5").splitlines()
    assert {line.partition("\t")[0] for line in alone} == {f"{job}_1"}
    assert len(alone) == 5
    assert "line3\tno luck today" in yard.read("logs", sweep)
    assert "line3\tno luck today" in yard.read("logs", job, "--trials")

    # Only the three again, with half as much memory more, and not where they failed.
    shown = yard.type("retry", sweep, "--memory", "+50%", "--dry-run")
    assert "#SBATCH --mem=300M" in shown
    assert "#SBATCH --array=1-3" in shown
    assert "#SBATCH --time=0-00:10:00" in shown
    assert "failed for: program" in yard.read("retry", sweep, "--cause", "memory", code=1)
    (yard.project / "mended").touch()
    asked = ("--cause", "program", "--memory", "+50%", "--exclude-node")
    again = json.loads(yard.type("retry", sweep, *asked, "--json"))
    assert again["jobs"][0]["tasks"] == 3
    yard.wait_for(sweep, finished=30, failed=0)
    newest, first = yard.sweep(sweep)["jobs"]
    assert newest["asked"]["memory"] == 300
    assert set(newest["asked"]["exclude"].split(",")) <= {"n1", "n2", "n3", "n4"}
    assert first["job_id"] == job
    assert sum(len(one["attempts"]) for one in _runs(yard, "line3", "line13", "line23")) == 6
    assert "no trial" in yard.read("retry", sweep, code=2)


def test_a_run_of_this_machine_once_more_on_slurm(yard: Yard) -> None:
    (yard.project / "where.py").write_text("import os; print('in', os.getenv('SLURM_JOB_ID'))\n")
    assert "in None" in yard.type("run", "-e", "where", "--", sys.executable, "where.py")
    run = yard.json("show", "where")
    again = json.loads(yard.type("retry", run["id"], "--on", "slurm", "--yes", "--json"))
    yard.wait_for(again["sweep"], finished=1)
    assert f"in {again['jobs'][0]['job_id']}" in yard.read("logs", again["sweep"])


def _runs(yard: Yard, *names: str) -> list[Any]:
    return [yard.json("show", name) for name in names]


def test_the_history_tells_what_was_asked_and_what_was_used(yard: Yard) -> None:
    line = python_line(str(yard.project / "busy.py"))
    sweep, job = yard.submit("busy", [line], "--memory", "400M", "--time", "5m")
    yard.wait_for_memory(job)
    yard.wait_for(sweep, finished=1)
    yard.wait_for_end(job)

    done = run_runyard("status", job, "--jobs", cwd=yard.project)
    assert "1 CPU, 400 MB, 5 min" in done.stdout
    assert "#SBATCH --mem=400M" in done.stdout
    assert "of 5 min" in done.stdout
    assert yard.read("status", job, "--script").startswith("#!/bin/bash\n#SBATCH")
    found = yard.json("status", sweep, "--jobs")[0]
    assert (found["states"], found["sweep_id"]) == ({"COMPLETED": 1}, sweep)
    assert found["used"]["longest_seconds"] >= 1
    if has_accounting(yard):
        wait_until(lambda: "memory_peak" in yard.json("status", job, "--jobs")["used"], timeout=180)
        used = yard.json("status", job, "--jobs")["used"]
        assert used["memory_peak"] > 30 << 20
        # At times Slurm's database never learns of it; then it is what we asked for (above).
        assert used.get("memory_asked", 400 << 20) == 400 << 20
        assert 0 < used["cpu_seconds"] <= used["cpu_seconds_held"] + 1
        assert job in {
            one["which"] for one in yard.json("status", "--jobs", "--all", "-l", "50")
        } | {one["job_id"] for one in yard.json("status", "--jobs")}
        assert yard.json("clusters", "usage")["source"] == "Slurm's accounting"
    else:
        assert "the site keeps no accounting" in done.stderr
        used = yard.json("status", job, "--jobs")["used"]
        assert used["memory_peak"] > 30 << 20
        refused = yard.read("status", "--jobs", "--all", code=1)
        assert "the site keeps no accounting" in refused
        assert "from its own ledger" in refused
        assert yard.json("clusters", "usage")["source"] == "runyard's own ledger"
    [used_hours] = yard.json("clusters", "usage", "--ledger")["accounts"]
    assert used_hours["cpu_hours"] * 3600 >= 1
    _check_report(yard, sweep, job)


def _check_report(yard: Yard, sweep: str, job: str) -> None:
    """A report says the same, from accounting or from what agents measured; and what to ask for."""
    truth = json.loads((yard.project / "truth.json").read_text())
    of_job, of_sweep = (yard.json("report", what) for what in (f"job:{job}", sweep))
    assert (of_job["kind"], of_sweep["kind"]) == ("job", "sweep")
    for told in (of_job, of_sweep):
        [group] = told["jobs"]
        assert group["source"] == ["accounting" if has_accounting(yard) else "agents"]
        # Accounting sees the agent as well; and an agent looks every two seconds.
        assert truth["peak"] - (4 << 20) <= group["memory_peak"] <= truth["peak"] + (150 << 20)
        assert truth["cpu"] * 0.9 - 2.5 <= group["cpu_used"] <= truth["cpu"] + 10
        assert group["cpu_idle"] == pytest.approx(max(0, group["cpu_held"] - group["cpu_used"]))
        assert (group["memory_asked"], group["limit"]) == (400 << 20, 300)
        words = " ".join(one["words"] for one in group["changes"])
        assert "ask --memory 256M instead of 400M" in words
        assert "--time" not in words  # Five minutes are the least that one asks for.
    assert [one["state"] for one in of_job["trials"]] == ["finished"]
    shown = ask_runyard("report", job, cwd=yard.project)
    assert "ASKED AND USED" in shown.stdout
    assert ("the site keeps no accounting" in shown.stdout) is not has_accounting(yard)


def test_a_long_list_of_tasks_is_counted_whole(yard: Yard) -> None:
    # No range describes it: squeue writes each of them.
    tasks = sorted({number * number for number in range(1, 31)})
    job = yard.cluster.submit("true", "--hold", f"--array={','.join(map(str, tasks))}")
    found = poll([job], yard.cluster.env)[job]
    assert found.states == {"PENDING": 30}
    yard.cluster.run("scancel", job)


def test_a_job_a_task_or_a_sweep_is_cancelled(yard: Yard) -> None:
    wait = [f"sleep {300 + number}" for number in range(3)]
    sweep, job = yard.submit("sleepers", wait, "--agents", "3", "--time", "10m")
    yard.wait_for(sweep, running=3)
    assert "goes back to the queue" in run_runyard("cancel", f"{job}_2", cwd=yard.project).stderr
    yard.wait_for(sweep, running=2, waiting=1)

    stranger = yard.cluster.submit("sleep 300", "--job-name=mine")
    yard.cluster.wait_for(stranger, "RUNNING")
    assert f"job {stranger} (not runyard's)  running on n" in yard.read("status", stranger)
    yard.type("cancel", stranger)
    yard.cluster.wait_for(stranger, "CANCELLED")

    yard.type("cancel", sweep)
    yard.cluster.wait_for(job, "CANCELLED")
    found = yard.sweep(sweep)
    assert (found["state"], found["jobs"][0]["states"]) == ("canceled", {"CANCELLED": 3})
    assert "has ended already" in run_runyard("cancel", job, cwd=yard.project).stderr


def test_what_the_cluster_has_and_what_runs_on_it(yard: Yard) -> None:
    _, job = yard.submit(
        "holder", [f"touch {shlex.quote(str(yard.project / 'held'))}; sleep 300"],
        "--gpus", "3", "--cpus", "2", "--memory", "100M", "--time", "10m",
    )  # fmt: skip
    wait_until((yard.project / "held").exists, timeout=180)
    main, *others = yard.json("clusters", "partitions")
    assert (main["name"], main["is_default"], main["nodes"]["total"]) == ("main", True, 4)
    assert main["gpus"]["fake"] == {"free": 13, "total": 16}
    assert main["cpus"] == {"free": 14, "total": 16}
    assert [one["longest"] for one in others if one["name"] == "short"] == [60.0]
    assert "13/16 fake" in yard.read("clusters", "partitions")

    told = yard.json("status", job, "--live")
    [task] = told["jobs"]
    assert (task["which"], task["cpus"], task["memory"]) == (job, 2, 100 << 20)
    assert [one["name"] for one in told["trials"]] == ["line1"]
    wait_until(lambda: yard.json("status", job, "--live")["jobs"][0]["memory_peak"], timeout=180)
    wait_until(lambda: yard.json("status", job, "--live")["trials"][0]["usage"], timeout=180)
    yard.cluster.run("scancel", job)


def test_one_question_to_slurm_serves_all_jobs(yard: Yard, tmp_path: Path) -> None:
    """A recording stand-in in front of the real squeue counts how often it is asked."""
    jobs = [yard.submit(name, ["sleep 300"], "--time", "9m")[1] for name in ("one", "two")]
    asked, real = tmp_path / "asked", shutil.which("squeue", path=yard.cluster.env["PATH"])
    stand_in = tmp_path / "squeue"
    stand_in.write_text(f'#!/bin/sh\necho x >>{asked}\nexec {real} "$@"\n')
    stand_in.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    shown = yard.type("status", env={"PATH": path})
    assert all(f"job {job}" in shown for job in jobs)
    assert asked.read_text() == "x\n"
    yard.cluster.run("scancel", *jobs)


@pytest.mark.parametrize(
    "words",
    [
        ("status", "99999999"),
        ("status", "99999999_3"),
        ("cancel", "99999999"),
        ("logs", "99999999"),
        ("retry", "99999999"),
        ("shell", "99999999_1"),
        ("status", "--jobs", "job:99999999"),
        ("report", "99999999"),
        ("status", "4021_"),
        ("status", "4021; rm -rf"),
        ("cancel", "job:nothing like it"),
        ("logs", "٣"),
        ("status", "--jobs", "--all", "4021"),
    ],
)  # fmt: skip
def test_a_job_that_is_not_there_is_told(yard: Yard, words: tuple[str, ...]) -> None:
    done = ask_runyard(*words, cwd=yard.project)
    assert done.returncode in (1, 2)
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines[0].startswith("runyard: ")
    assert any(line.startswith("  try:  ") for line in lines)
    assert "Traceback" not in done.stderr


def test_an_interactive_job_outlives_the_connection(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = yard.type("shell", "--dry-run", "--cpus", "2", "--memory", "100M", "--time", "5m")
    assert asked.startswith("salloc --no-shell --job-name=shell-birds")
    assert "--cpus-per-task=2 --mem=100M --time=0-00:05:00" in asked
    monkeypatch.chdir(yard.project)
    with Terminal([*RUNYARD, "shell", "--memory", "100M", "--time", "5m"]) as terminal:
        number = terminal.expect(r"Granted job allocation (\d+)")[1]
        terminal.type("echo in-$SLURM_JOB_ID-$project_name\n")
        terminal.expect(f"in-{number}-birds")
        terminal.hang_up()

        found = yard.json("status", number)["jobs"][0]
        assert (found["kind"], found["states"]) == ("shell", {"RUNNING": 1})
        inside = yard.type("shell", number, "--", "sh", "-c", "echo back-$SLURM_JOB_ID")
        assert inside == f"back-{number}\n"
        yard.type("cancel", number)
        yard.cluster.wait_for(number, "CANCELLED")

    done = run_runyard("shell", "--memory", "100M", "--", "sh", "-c", "exit 4", cwd=yard.project)
    assert done.returncode == 4
    [newest, *_] = yard.json("status", "--jobs")
    assert newest["states"] == {"CANCELLED": 1}
