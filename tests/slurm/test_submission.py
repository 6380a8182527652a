"""From a command on the login node to trials that ran: on a real cluster, in a hostile folder.

With RUNYARD_ALL_SLURM=1 everything is tried on a cluster without accounting too.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from runyard.client.api import Api
from runyard.client.discover import ensure_server
from runyard.client.http import Connection
from runyard.errors import ServerError
from runyard.home import Home, read_discovery
from tests.conftest import end_server
from tests.node.terminals import until
from tests.packages import require
from tests.slurm.cluster import FINAL_STATES
from tests.slurm.yard import HOSTILE, Yard, open_yard

pytestmark = pytest.mark.slurm

SAYS_WHERE = """\
import os, sys, time
given = dict(word[2:].split("=") for word in sys.argv[1:])
print("node", os.environ["SLURMD_NODENAME"], "gpu", os.environ.get("CUDA_VISIBLE_DEVICES"))
time.sleep(float(given.get("seconds", 0)))
"""


ALL = bool(os.environ.get("RUNYARD_ALL_SLURM"))


@pytest.fixture(scope="module", params=["accounting", *(["no accounting"] if ALL else [])])
def yard(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    module_environment: pytest.MonkeyPatch,
) -> Iterator[Yard]:
    """Project and state folder lie in a folder with a name as nobody wants it."""
    bare = request.param == "no accounting"
    slurm_cluster = request.getfixturevalue("bare_slurm_cluster" if bare else "slurm_cluster")
    folder = tmp_path_factory.mktemp("yard") / HOSTILE
    with open_yard(folder, module_environment, slurm_cluster, "my project's") as opened:
        yield opened


def grid(yard: Yard, name: str, **parameters: list[float]) -> str:
    yard.write("train.py", SAYS_WHERE)
    given = {key: {"values": values} for key, values in parameters.items()}
    file = {"program": "train.py", "method": "grid", "parameters": given}
    return str(yard.write(name, json.dumps(file)).name)


def test_a_sweep_is_an_array_of_agents_with_a_throttle(yard: Yard) -> None:
    sweep = grid(yard, "sweep.yaml", lr=[1, 2, 3, 4, 5, 6], seconds=[0.3])
    said = yard.submit("sweep", sweep, "--on", "slurm", "--at-once", "2", "--gpus", "1")
    (job,) = said["jobs"]
    assert job["array"] == "1-6"
    most = 0
    while yard.api.sweeps.find(said["sweep"])["state"] == "running":
        most = max(most, len(yard.cluster.run("squeue", "-h", "-r", "-t", "R").stdout.splitlines()))
    assert 1 <= most <= 2
    found = yard.ended(said["sweep"])
    assert found["counts"]["finished"] == 6
    yard.cluster.wait_for(job["job_id"], "COMPLETED")
    assert yard.logs(said).count("began") == 6
    (recorded,) = yard.api.jobs.jobs(sweep=found["key"])
    assert (recorded["job_id"], recorded["tasks"]) == (job["job_id"], 6)
    assert recorded["asked"]["gpus"] == 1


def test_a_sweep_over_the_nodes_of_one_job(yard: Yard) -> None:
    sweep = grid(yard, "sweep.yaml", lr=[1, 2, 3, 4, 5, 6, 7, 8], seconds=[0.5])
    said = yard.submit(
        "sweep", sweep, "--on", "slurm", "--form", "nodes", "--agents", "4", "--cpus", "4"
    )
    found = yard.ended(said["sweep"])
    assert found["counts"]["finished"] == 8
    (record,) = yard.cluster.wait_for(said["jobs"][0]["job_id"], "COMPLETED")
    assert record["NumNodes"] == "4"
    agents = yard.api.jobs.job(said["jobs"][0]["job_id"])["agents"]
    assert {agent["node"] for agent in agents} == {"n1", "n2", "n3", "n4"}


def test_a_node_whose_agent_dies_is_told_of_and_the_others_go_on(yard: Yard) -> None:
    yard.write(
        "train.py",
        "import os, signal, sys\n"
        "if '--lr=1' in sys.argv and os.environ['RUNYARD_ATTEMPT'] == '1':\n"
        "    agent = os.getppid()\n"
        "    os.kill(agent, signal.SIGKILL)\n",
    )
    file = {"program": "train.py", "method": "grid", "parameters": {"lr": {"values": [1, 2, 3]}}}
    yard.write("sweep.yaml", json.dumps(file))
    said = yard.submit(
        "sweep", "sweep.yaml", "--on", "slurm", "--form", "nodes", "--agents", "2", "--cpus", "4"
    )
    assert yard.ended(said["sweep"])["counts"]["finished"] == 3
    (record,) = yard.cluster.wait_for(said["jobs"][0]["job_id"], "FAILED")
    assert record["ExitCode"] == "137:0"
    assert re.search(r"the agent on n\d ended with code 137", yard.logs(said))


# Stays until a program of another job is there too.
MEETS = """\
import os, pathlib, time
here = pathlib.Path({place!r})
(here / os.environ["SLURM_JOB_ID"]).touch()
end = time.time() + 120
while len(list(here.iterdir())) < 2 and time.time() < end:
    time.sleep(0.05)
"""


@pytest.mark.parametrize("form", ["array", *(["nodes", "jobs"] if ALL else [])])
def test_agents_are_added_to_a_running_sweep(yard: Yard, tmp_path: Path, form: str) -> None:
    sweep = grid(yard, "sweep.yaml", lr=[1, 2, 3, 4, 5, 6])
    yard.write("train.py", MEETS.format(place=str(tmp_path)))
    first = yard.submit("sweep", sweep, "--on", "slurm", "--agents", "1")
    more = yard.submit(
        "agents",
        "add",
        first["sweep"],
        "--agents",
        "4",
        "--on",
        "slurm",
        "--form",
        form,
        "--cpus",
        "2",
    )
    arrays = {"array": ["1-4"], "nodes": [None], "jobs": [None] * 4}
    assert [job["array"] or None for job in more["jobs"]] == arrays[form]
    found = yard.ended(first["sweep"], seconds=150)
    assert found["counts"]["finished"] == 6
    at_work = {
        agent["job"]
        for job in (*first["jobs"], *more["jobs"])
        for agent in yard.api.jobs.job(job["job_id"])["agents"]
    }
    assert len(at_work) >= 2
    ended = yard.type("agents", "add", first["sweep"], "--on", "slurm", check=False)
    assert ended.returncode == 2
    assert "has ended: finished" in ended.stderr


def test_a_farm_with_one_gpu_a_task(yard: Yard) -> None:
    yard.write("tasks.txt", 'echo "gpu=$CUDA_VISIBLE_DEVICES" task {1..4}; sleep 1\n' * 4)
    said = yard.submit("farm", "tasks.txt", "--on", "slurm", "--gpus", "1", "--trials-each", "1")
    assert said["jobs"][0]["array"] == "1-4"  # As many as there are lines, not one more.
    assert yard.ended(said["sweep"])["counts"]["finished"] == 4
    shown = re.findall(r"gpu=(\S*)", yard.logs(said))
    assert len(shown) == 4
    assert all(re.fullmatch(r"[0-3]", one) for one in shown)


def test_several_gpus_in_one_job_each_program_tied_to_one(yard: Yard) -> None:
    yard.write("tasks.txt", 'echo "gpu=$CUDA_VISIBLE_DEVICES"; sleep 1\n' * 4)
    said = yard.submit(
        "farm", "tasks.txt", "--on", "slurm", "--agents", "1", "--gpus", "4", "--per-gpu", "1"
    )
    assert yard.ended(said["sweep"])["counts"]["finished"] == 4
    assert sorted(re.findall(r"gpu=(\S*)", yard.logs(said))) == ["0", "1", "2", "3"]


def test_words_survive_and_the_jobs_exit_code_is_the_programs(yard: Yard) -> None:
    words = ["a,b", "c  d", "it's", '"q"', "$HOME", "line\nbreak", "=x", "*"]
    program = "import os, sys; print(sys.argv[1:], os.environ['SLURM_TMPDIR']); sys.exit(7)"
    yard.write("say.py", program)
    said = yard.submit("submit", "--exp-name", "words", "--", "python", "say.py", *words)
    (record,) = yard.cluster.wait_for(said["jobs"][0]["job_id"], "FAILED")
    assert record["ExitCode"] == "7:0"
    assert re.fullmatch(r"run-my_project_s-words", record["JobName"])
    logs = yard.logs(said)
    assert repr(words) in logs
    # Clean-up ran although the program failed: the folder on the node's disk is gone.
    (made,) = re.findall(r"\] (/\S+)$", logs, re.MULTILINE)
    assert not Path(made).exists()
    assert "ended with code 7" in logs


def test_variables_and_folders_of_a_job(yard: Yard) -> None:
    names = ("source_dir", "project_name", "scratch_dir", "exp_name", "SLURM_TMPDIR")
    yard.write(
        "places.py",
        "import json, os\n"
        f"found = {{name: os.environ[name] for name in {names!r}}}\n"
        "found['kept'] = os.path.isdir(found['scratch_dir'] + '/big/checkpoints')\n"
        "found['outputs'] = os.path.isdir(found['scratch_dir'] + '/hpc_outputs')\n"
        "found['cpus'] = os.environ['SRUN_CPUS_PER_TASK']\n"
        "json.dump(found, open('places.json', 'w'))\n",
    )
    said = yard.submit("submit", "-e", "big", "-c", "2", "--", "python", "places.py")
    yard.cluster.wait_for(said["jobs"][0]["job_id"], "COMPLETED")
    # Written into the working folder, a copy of the code: brought to the project at the end.
    found = json.loads((yard.project / "places.json").read_text())
    assert found["project_name"] == yard.project.name
    assert found["exp_name"] == "big"
    assert found["source_dir"].startswith(str(yard.home.path / "snapshots"))
    assert found["kept"]
    assert found["outputs"]
    assert found["cpus"] == "2"


def test_a_job_runs_the_code_that_was_submitted(yard: Yard) -> None:
    yard.write("version.py", "VERSION = 1\n")
    yard.write("use.py", "from version import VERSION; print('version', VERSION)\n")
    blocked = yard.cluster.submit("sleep 30", "--exclusive", "--nodes=4")
    said = yard.submit("submit", "--", "python", "use.py")
    yard.write("version.py", "VERSION = 2\n")
    yard.cluster.run("scancel", blocked)
    yard.cluster.wait_for(said["jobs"][0]["job_id"], "COMPLETED")
    assert "version 1" in yard.logs(said)

    live = yard.submit("submit", "--no-snapshot", "--", "python", "use.py")
    yard.cluster.wait_for(live["jobs"][0]["job_id"], "COMPLETED")
    assert "version 2" in yard.logs(live)


def test_agents_that_are_added_run_the_code_of_the_sweep(yard: Yard) -> None:
    yard.write("train.py", "print('then')\n")
    yard.write("uv.lock", "version = 1\n")
    file = {"program": "train.py", "method": "grid", "parameters": {"lr": {"values": [1, 2]}}}
    yard.write("sweep.yaml", json.dumps(file))
    said = yard.submit("sweep", "sweep.yaml", "--on", "slurm", "--agents", "1",
                       "--trials-each", "1")  # fmt: skip
    yard.cluster.wait_for(said["jobs"][0]["job_id"], "COMPLETED")
    yard.write("train.py", "print('now')\n")
    yard.write("uv.lock", "version = 2\n")
    done = yard.type("agents", "add", said["sweep"], "--on", "slurm", "--json")
    assert "train.py, uv.lock" in done.stderr  # What is different now is said.
    assert "the dependencies have changed too (uv.lock)" in done.stderr
    added = json.loads(done.stdout)
    yard.cluster.wait_for(added["jobs"][0]["job_id"], "COMPLETED")
    assert "then" in yard.logs(added)


SAVES = """\
import os, pathlib, signal, sys, time
saved = pathlib.Path(os.environ["RUNYARD_CHECKPOINT_DIR"]) / "state"
def save(*_):
    saved.parent.mkdir(parents=True, exist_ok=True)
    saved.write_text("1")
    sys.exit(75)
signal.signal(signal.SIGUSR2, save)
if saved.exists():
    print("goes on")
    sys.exit(0)
print("began", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_signal_to_the_job_lets_programs_save_and_another_job_goes_on(
    yard: Yard, shell: str
) -> None:
    if shell == "zsh":
        require("zsh")
    yard.write("profiles/rig.yaml", f"script:\n  interpreter: /usr/bin/{shell}\n")
    rig = {"RUNYARD_CLUSTERS": str(yard.project / "profiles"), "RUNYARD_CLUSTER": "rig"}
    yard.write("save.py", SAVES)
    words = ("submit", "--json", "--", "python", "save.py")
    said = json.loads(yard.type(*words, env={**rig, "SCRATCH": str(yard.home.path)}).stdout)
    job = said["jobs"][0]["job_id"]
    yard.cluster.wait_for(job, "RUNNING")
    while "began" not in yard.logs(said):
        time.sleep(0.05)
    # As Slurm does it before the time limit: to the batch shell alone.
    yard.cluster.run("scancel", "--batch", "--signal=USR2", job)
    yard.cluster.wait_for(job, "COMPLETED")
    assert yard.api.sweeps.find(said["sweep"])["counts"]["waiting"] == 1
    assert (Path(said["folder"]) / "script.sh").read_text().startswith(f"#!/usr/bin/{shell}\n")

    more = yard.submit("agents", "add", said["sweep"], "--on", "slurm")
    yard.cluster.wait_for(more["jobs"][0]["job_id"], "COMPLETED")
    assert "goes on" in yard.logs(more)
    assert yard.ended(said["sweep"])["counts"]["finished"] == 1


def test_no_secret_is_anywhere_to_be_seen(yard: Yard) -> None:
    yard.write("wait.py", "import time; print('at work', flush=True); time.sleep(2)\n")
    secret = "0123456789abcdef0123456789abcdef01234567"
    done = yard.type("submit", "--json", "--", "python", "wait.py", env={"WANDB_API_KEY": secret})
    said = json.loads(done.stdout)
    job = said["jobs"][0]["job_id"]
    yard.cluster.wait_for(job, "RUNNING")
    key = read_discovery(yard.home)
    assert key is not None
    seen = [
        yard.cluster.run("ps", "-ww", "-A", "-o", "command=").stdout,
        yard.cluster.run("scontrol", "show", "job", job).stdout,
        yard.cluster.run("scontrol", "write", "batch_script", job, "-").stdout,
        done.stdout + done.stderr,
    ]
    yard.cluster.wait_for(job, "COMPLETED")
    if yard.cluster.spec.accounting:
        # The controller sends scripts and environments to the database when it has time.
        kept = partial(yard.cluster.run, "sacct", "-j", job)
        until(lambda: "PATH=" in kept("--env-vars").stdout, lambda: kept("--env-vars").stdout)
        stored = [kept(words).stdout for words in ("--batch-script", "--env-vars", "--format=ALL")]
        seen += stored
    seen += [file.read_text() for file in Path(said["folder"]).rglob("*") if file.is_file()]
    seen.append(yard.logs(said))
    assert "at work" in seen[-1]
    for text in seen:
        assert key.key not in text
        assert secret not in text


def test_a_jobs_programs_have_a_key_of_their_own(yard: Yard) -> None:
    yard.write(
        "tell.py", "import json, os; print('SEEN', json.dumps(dict(os.environ)), flush=True)"
    )
    done = yard.type("submit", "--json", "--", "python", "tell.py")
    said = json.loads(done.stdout)
    job = said["jobs"][0]["job_id"]
    yard.cluster.wait_for(job, "COMPLETED")
    (seen,) = [line for line in yard.logs(said).splitlines() if "SEEN {" in line]
    environment = json.loads(seen.partition("SEEN ")[2])
    own = read_discovery(yard.home)
    assert own is not None
    assert own.key not in environment.values()
    with pytest.raises(ServerError, match="needs your own key"):
        Api(Connection(own.url, environment["WANDB_API_KEY"])).people.list_keys()
    (key,) = [key for key in yard.api.people.list_keys() if key["label"].startswith(f"job {job}")]
    assert (key["kind"], key["scope"]) == ("job", "runs")


def test_a_job_logs_to_another_server_with_the_key_of_that_one(yard: Yard, tmp_path: Path) -> None:
    """The other server is one of ours, as a double for W&B's cloud."""
    yard.write("logs.py", "import wandb\nwith wandb.init() as run:\n    run.log({'x': 1})\n")
    other = Home(tmp_path / "other")
    try:
        far = ensure_server(other).api
        key = far.people.add_user("bob")["key"]
        words = ("submit", "--tracking", far.url, "--project", "far", "--key", "mine", "--")
        refused = yard.type(*words, "python", "logs.py", check=False)
        assert "keys.json" in refused.stderr
        yard.write("keys.json", json.dumps({"mine": key})).chmod(0o600)
        said = yard.submit(*words, "python", "logs.py")
        yard.cluster.wait_for(said["jobs"][0]["job_id"], "COMPLETED", 120)
        (sent,) = far.runs(project="far")
        assert (sent["entity"], sent["steps"], sent["state"]) == ("bob", 1, "finished")
        assert yard.api.run(sent["id"])["steps"] == 1
        kept = [file.read_text() for file in Path(said["folder"]).rglob("*") if file.is_file()]
        assert not [text for text in (*kept, yard.logs(said)) if key in text]
    finally:
        (yard.project / "keys.json").unlink(missing_ok=True)
        end_server(other)


def test_what_slurm_refuses_is_told_with_its_words_and_leaves_no_sweep(yard: Yard) -> None:
    yard.write("train.py", SAYS_WHERE)
    before = [sweep["id"] for sweep in yard.api.sweeps.sweeps()]
    done = yard.type("submit", "--partition", "nowhere", "--", "python", "train.py", check=False)
    assert done.returncode == 1
    assert "Invalid partition name specified" in done.stderr
    assert "sinfo -s" in done.stderr
    assert [sweep["id"] for sweep in yard.api.sweeps.sweeps()] == before


def test_a_dry_run_shows_what_is_sent_and_makes_nothing(yard: Yard) -> None:
    yard.write("train.py", SAYS_WHERE)
    before = len(yard.api.sweeps.sweeps()), sorted(yard.home.path.rglob("*.sh"))
    shown = yard.type("submit", "--dry-run", "-t", "7m", "--", "python", "train.py")
    assert (len(yard.api.sweeps.sweeps()), sorted(yard.home.path.rglob("*.sh"))) == before
    checked = yard.cluster.run("sbatch", "--test-only", stdin=shown.stdout, cwd=yard.project)
    assert "to start at" in checked.stderr
    said = yard.submit("submit", "-t", "7m", "--", "python", "train.py")
    sent = (Path(said["folder"]) / "script.sh").read_text()
    token = Path(said["folder"]).name
    (shown_token,) = set(re.findall(r"\d{8}-\d{6}-[0-9a-f]{6}", shown.stdout))
    assert shown.stdout.replace(shown_token, token) == sent
    yard.cluster.wait_for(said["jobs"][0]["job_id"], FINAL_STATES)


def test_copies_that_no_job_needs_are_cleaned_away(yard: Yard) -> None:
    kept = []
    for number in (1, 2):
        yard.write("train.py", f"print({number})\n")
        said = yard.submit("submit", "--sbatch=--begin=now+1hour", "--", "python", "train.py")
        told = json.loads((Path(said["folder"]) / "job.json").read_text())
        kept.append((said, told["snapshot"]["digest"], Path(told["folder"])))
    (first, digest, tree), (second, needed, _) = kept
    (tree / "left.txt").write_text("by a job that was killed")
    for copy in (yard.home.path / "snapshots").iterdir():
        os.utime(copy, (1, 1))
    yard.type("cancel", first["sweep"])
    yard.cluster.wait_for(first["jobs"][0]["job_id"], "CANCELLED")

    shown = json.loads(yard.type("clean", "--snapshots", "--dry-run", "--json").stdout)
    assert digest in shown
    assert tree.exists()
    gone = json.loads(yard.type("clean", "--snapshots", "--json").stdout)
    assert digest in gone
    assert needed not in gone
    assert not tree.exists()
    assert (yard.project / "left.txt").read_text() == "by a job that was killed"
    yard.cluster.run("scancel", second["jobs"][0]["job_id"])


def test_more_agents_than_an_array_may_have_become_several(yard: Yard) -> None:
    lines = "\n".join(f"true {number}" for number in range(2500))
    yard.write("many.txt", lines + "\n")
    said = yard.submit("farm", "many.txt", "--on", "slurm", "--sbatch=--begin=now+1hour")
    assert [job["array"] for job in said["jobs"]] == ["1-1000", "1-1000", "1-500"]
    assert [job["offset"] for job in said["jobs"]] == [0, 1000, 2000]
    files = {file.name for file in Path(said["folder"]).iterdir()}
    assert files <= {"job.json", "script.sh", "logs"}  # However many there are.
    yard.cluster.run("scancel", *(job["job_id"] for job in said["jobs"]))
