"""Looking after jobs on a real cluster, with accounting and without.

Without it a short form runs always, and with RUNYARD_ALL_SLURM=1 everything.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from runyard.client.discover import find_server
from runyard.home import Home
from tests.conftest import ask_runyard, end_server, isolate, run_runyard
from tests.node.terminals import RUNYARD, Terminal
from tests.slurm.cluster import FINAL_STATES, SlurmCluster
from tests.slurm.test_cluster import wait_until

pytestmark = pytest.mark.slurm

# The third, the thirteenth and the twenty-third fail until they are mended; the first two wait.
PROGRAM = """
import pathlib, sys, time
here, number = pathlib.Path(__file__).parent, int(sys.argv[1])
print("this is task", number, flush=True)
while number <= 2 and not (here / "go").exists():
    time.sleep(0.05)
if number in (3, 13, 23) and not (here / "mended").exists():
    sys.exit("no luck today")
"""

# Works until Slurm has seen it, and is told so. At its end it says what the kernel knows of it.
BUSY = """
import json, pathlib, resource, time
memory, end = bytearray(30 << 20), time.time() + 1
while time.time() < end or not pathlib.Path(__file__).with_name("seen").exists():
    pass
status = pathlib.Path("/proc/self/status").read_text()
used = resource.getrusage(resource.RUSAGE_SELF)
truth = {"peak": int(status.partition("VmHWM:")[2].split()[0]) << 10,
         "cpu": used.ru_utime + used.ru_stime}
pathlib.Path(__file__).with_name("truth.json").write_text(json.dumps(truth))
"""


@dataclass(frozen=True)
class Yard:
    """A project on a cluster, and the commands that a person types there."""

    cluster: SlurmCluster
    project: Path
    home: Home

    def type(self, *words: str, code: int = 0, env: dict[str, str] | None = None) -> str:
        done = run_runyard(*words, cwd=self.project, env=env)
        assert done.returncode == code, done.stderr + done.stdout
        return done.stdout if code == 0 else done.stderr

    def read(self, *words: str, code: int = 0) -> str:
        """What a command shows that changes nothing."""
        done = ask_runyard(*words, cwd=self.project)
        assert done.returncode == code, done.stderr + done.stdout
        return done.stdout if code == 0 else done.stderr

    def json(self, *words: str) -> Any:
        return json.loads(self.read(*words, "--json"))

    def submit(self, name: str, lines: list[str], *more: str) -> tuple[str, str]:
        """A list as an array of agents: the sweep's id, and the job's."""
        (self.project / f"{name}.txt").write_text("\n".join(lines) + "\n")
        words = ("farm", f"{name}.txt", "--on", "slurm", "--yes", "-n", name, *more)
        told = json.loads(self.type(*words, "--json"))
        return told["sweep"], told["jobs"][0]["job_id"]

    def sweep(self, sweep: str) -> Any:
        [found] = self.json("status", sweep)["sweeps"]
        return found

    def wait_for(self, sweep: str, **counts: int) -> None:
        """Until so many trials are in these states, as the server has it."""
        api = find_server(self.home)
        assert api is not None

        def is_so() -> bool:
            found = api.sweeps.find(sweep)["counts"]
            return all(found[state] == count for state, count in counts.items())

        wait_until(is_so, timeout=60)

    def wait_for_memory(self, job: str) -> None:
        """Until Slurm has seen what busy.py holds; it is let go then."""
        wait_until(
            lambda: any((one["memory_peak"] or 0) > 30 << 20 for one in self.running(job)),
            timeout=90,
        )
        (self.project / "seen").touch()

    def running(self, job: str) -> list[Any]:
        found: list[Any] = self.json("top", job)["jobs"]
        return found

    def wait_for_end(self, job: str) -> None:
        """Until Slurm has done with it, and the server knows."""
        self.cluster.wait_for(job, FINAL_STATES, timeout=60)
        self.read("status", job)


ALL = bool(os.environ.get("RUNYARD_ALL_SLURM"))


@pytest.fixture(scope="module", params=["accounting", *(["no accounting"] if ALL else [])])
def yard(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Yard]:
    bare = request.param == "no accounting"
    cluster = request.getfixturevalue("bare_slurm_cluster" if bare else "slurm_cluster")
    with _open_yard(cluster, tmp_path_factory.mktemp("a yard")) as opened:
        yield opened


@contextlib.contextmanager
def _open_yard(cluster: SlurmCluster, folder: Path) -> Iterator[Yard]:
    with pytest.MonkeyPatch.context() as patch:
        isolate(folder, patch)
        for name in ("SLURM_CONF", "PATH"):
            patch.setenv(name, cluster.env[name])
        project = folder / "birds"
        project.mkdir()
        (project / "task.py").write_text(PROGRAM)
        (project / "busy.py").write_text(BUSY)
        home = Home(folder / "state")
        try:
            yield Yard(cluster, project, home)
        finally:
            cluster.cancel_jobs()
            end_server(home)


def _python(*words: str) -> str:
    return shlex.join([sys.executable, *words])


def _has_accounting(yard: Yard) -> bool:
    return yard.cluster.spec.accounting


def test_a_list_of_thirty_from_the_queue_to_the_retry_of_three(yard: Yard) -> None:
    task = str(yard.project / "task.py")
    lines = [_python(task, str(number)) for number in range(1, 31)]
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
    [trial] = [one for one in yard.json("top", sweep)["trials"] if one["name"] == "line1"]
    assert trial["job"].startswith(f"{job}_")
    assert f"job {job}" in yard.read("status", trial["id"])

    (yard.project / "go").touch()
    yard.wait_for(sweep, finished=27, failed=3)
    yard.wait_for_end(job)

    # What its tasks printed, merged and labelled; and one of them.
    printed = yard.read("logs", job)
    assert len({line.partition("\t")[0] for line in printed.splitlines()}) > 1
    assert all(f"this is task {number}" in printed for number in range(1, 31))
    alone = yard.read("logs", f"{job}_1", "-n", "5").splitlines()
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


def _runs(yard: Yard, *names: str) -> list[Any]:
    return [yard.json("show", name) for name in names]


def test_the_history_tells_what_was_asked_and_what_was_used(yard: Yard) -> None:
    line = _python(str(yard.project / "busy.py"))
    sweep, job = yard.submit("busy", [line], "--memory", "400M", "--time", "5m")
    yard.wait_for_memory(job)
    yard.wait_for(sweep, finished=1)
    yard.wait_for_end(job)

    done = run_runyard("jobs", job, cwd=yard.project)
    assert "1 CPU, 400 MB, 5 min" in done.stdout
    assert "#SBATCH --mem=400M" in done.stdout
    assert "of 5 min" in done.stdout
    assert yard.read("jobs", job, "--script").startswith("#!/bin/bash\n#SBATCH")
    found = yard.json("jobs", sweep)[0]
    assert (found["states"], found["sweep_id"]) == ({"COMPLETED": 1}, sweep)
    assert found["used"]["longest_seconds"] >= 1
    if _has_accounting(yard):
        wait_until(lambda: "memory_peak" in yard.json("jobs", job)["used"], timeout=90)
        used = yard.json("jobs", job)["used"]
        assert used["memory_peak"] > 30 << 20
        assert used["memory_asked"] == 400 << 20
        assert 0 < used["cpu_seconds"] <= used["cpu_seconds_held"] + 1
        assert job in {one["which"] for one in yard.json("jobs", "--all", "-n", "50")} | {
            one["job_id"] for one in yard.json("jobs")
        }
        assert yard.json("usage")["source"] == "Slurm's accounting"
    else:
        assert "the site keeps no accounting" in done.stderr
        used = yard.json("jobs", job)["used"]
        assert used["memory_peak"] > 30 << 20
        refused = yard.read("jobs", "--all", code=1)
        assert "the site keeps no accounting" in refused
        assert "from its own ledger" in refused
        assert yard.json("usage")["source"] == "runyard's own ledger"
    [used_hours] = yard.json("usage", "--ledger")["accounts"]
    assert used_hours["cpu_hours"] * 3600 >= 1
    _check_report(yard, sweep, job)


def _check_report(yard: Yard, sweep: str, job: str) -> None:
    """A report says the same, from accounting or from what agents measured; and what to ask for."""
    truth = json.loads((yard.project / "truth.json").read_text())
    of_job, of_sweep = (yard.json("report", what) for what in (f"job:{job}", sweep))
    assert (of_job["kind"], of_sweep["kind"]) == ("job", "sweep")
    for told in (of_job, of_sweep):
        [group] = told["jobs"]
        assert group["source"] == ["accounting" if _has_accounting(yard) else "agents"]
        # Accounting sees the agent as well; and an agent looks every two seconds.
        assert truth["peak"] - (4 << 20) <= group["memory_peak"] <= truth["peak"] + (150 << 20)
        assert truth["cpu"] * 0.9 - 2.5 <= group["cpu_used"] <= truth["cpu"] + 10
        assert group["cpu_idle"] == pytest.approx(max(0, group["cpu_held"] - group["cpu_used"]))
        assert (group["memory_asked"], group["limit"]) == (400 << 20, 300)
        words = " ".join(one["words"] for one in group["changes"])
        assert "ask --mem 256M instead of 400M" in words
        assert "--time" not in words  # Five minutes are the least that one asks for.
    assert [one["state"] for one in of_job["trials"]] == ["finished"]
    shown = ask_runyard("report", job, cwd=yard.project)
    assert "ASKED AND USED" in shown.stdout
    assert ("the site keeps no accounting" in shown.stdout) is not _has_accounting(yard)


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
    wait_until((yard.project / "held").exists, timeout=60)
    main, *others = yard.json("partitions")
    assert (main["name"], main["is_default"], main["nodes"]["total"]) == ("main", True, 4)
    assert main["gpus"]["fake"] == {"free": 13, "total": 16}
    assert main["cpus"] == {"free": 14, "total": 16}
    assert [one["longest"] for one in others if one["name"] == "short"] == [60.0]
    assert "13/16 fake" in yard.read("partitions")

    told = yard.json("top", job)
    [task] = told["jobs"]
    assert (task["which"], task["cpus"], task["memory"]) == (job, 2, 100 << 20)
    assert [one["name"] for one in told["trials"]] == ["line1"]
    wait_until(lambda: yard.json("top", job)["jobs"][0]["memory_peak"], timeout=60)
    wait_until(lambda: yard.json("top", job)["trials"][0]["usage"], timeout=60)
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
        ("jobs", "job:99999999"),
        ("report", "99999999"),
        ("status", "4021_"),
        ("status", "4021; rm -rf"),
        ("cancel", "job:nothing like it"),
        ("logs", "٣"),
        ("jobs", "--all", "4021"),
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
    [newest, *_] = yard.json("jobs")
    assert newest["states"] == {"CANCELLED": 1}


@pytest.fixture(scope="module")
def bare_yard(
    bare_slurm_cluster: SlurmCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Yard]:
    with _open_yard(bare_slurm_cluster, tmp_path_factory.mktemp("bare")) as opened:
        yield opened


def test_without_accounting_runyard_remembers_by_itself(bare_yard: Yard) -> None:
    yard = bare_yard
    lines = [_python(str(yard.project / "task.py"), str(number)) for number in (3, 4, 5)]
    lines.append(_python(str(yard.project / "busy.py")))
    sweep, job = yard.submit("some", lines, "--agents", "2", "--memory", "400M", "--gpus", "1")
    yard.wait_for_memory(job)
    yard.wait_for(sweep, finished=3, failed=1)
    yard.wait_for_end(job)
    told = ask_runyard("jobs", job, cwd=yard.project)
    assert "the site keeps no accounting" in told.stderr
    found = yard.json("jobs", job)
    assert sum(found["states"].values()) == 2
    assert set(found["states"]) == {"COMPLETED", "FAILED"}  # As its own trials ended.
    assert found["used"]["memory_peak"] > 30 << 20
    assert found["used"]["longest_seconds"] >= 1
    assert "line1\tno luck today" in yard.read("logs", job, "--trials")
    refused = yard.read("jobs", "--all", code=1)
    assert "the site keeps no accounting" in refused
    assert "from its own ledger" in refused
    assert yard.json("usage")["source"] == "runyard's own ledger"
    [group] = yard.json("report", f"job:{job}")["jobs"]
    assert group["source"] == ["agents"]

    (yard.project / "mended").touch()
    again = json.loads(yard.type("retry", sweep, "--form", "nodes", "--json"))
    assert again["jobs"][0]["tasks"] == 1
    yard.wait_for(sweep, finished=4, failed=0)


def test_a_controller_that_hangs_is_told_and_what_is_known_is_shown(bare_yard: Yard) -> None:
    yard = bare_yard  # Others share the other cluster; this one may hang.
    sweep, job = yard.submit("patient", ["sleep 300"], "--time", "9m")
    yard.wait_for(sweep, running=1)
    assert f"job {job}  running on n" in yard.read("status", sweep)
    controller = int((yard.cluster.folder / "slurmctld.pid").read_text())
    os.kill(controller, signal.SIGSTOP)
    try:
        shown = yard.type("status", sweep, env={"RUNYARD_SLURM_SECONDS": "1"})
    finally:
        os.kill(controller, signal.SIGCONT)
    assert "1 running" in shown
    assert f"job {job}  running" in shown
    assert "no answer in 1 s" in shown
    assert "jobs as they were" in shown
    assert yard.json("status", sweep)["slurm"]["trouble"] is None
    yard.type("cancel", sweep)
    yard.cluster.wait_for(job, "CANCELLED", timeout=60)
    assert yard.sweep(sweep)["jobs"][0]["states"] == {"CANCELLED": 1}
