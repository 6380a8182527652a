"""The working order of the document that sizes and packs experiments, typed letter by letter.

Where the document has `parallel`, `runyard farm` stands; where it has a script that writes
task files, `runyard farm --grid ... --split`. All else is as it is printed there: options, names
of files and folders, the array with a task too many, a bash word under `sh`. The rig's GPUs are
of the type `fake`, and its nodes have 8 GB.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.live.sweeping import with_python
from tests.node.recorded_driver import SCENES, answers, build_driver
from tests.node.terminals import until
from tests.slurm.cluster import FINAL_STATES
from tests.slurm.yard import Yard

pytestmark = pytest.mark.slurm

RUN = """\
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--step-size", type=float)
parser.add_argument("--seed", type=int)
args = parser.parse_args()
print("step size", args.step_size, "seed", args.seed)
"""
TASKS = """\
python run.py --step-size 0.01 --seed 1
python run.py --step-size 0.01 --seed 2
python run.py --step-size 0.01 --seed 3
python run.py --step-size 0.001 --seed 1
"""
# The document's own, with its names filled in.
RUN_GPU = """\
#!/bin/sh

#SBATCH --account=def-kim
#SBATCH --mail-type=ALL
#SBATCH --mail-user=someone@domain.com
#SBATCH --error={home}/scratch/log/slurm-%j-%n-%a.err
#SBATCH --output={home}/scratch/log/slurm-%j-%n-%a.out
#SBATCH --gres=gpu:fake:1
#SBATCH --cpus-per-task=4
#SBATCH --mem=2G
#SBATCH --time=0-24:00

cd ../../  # Go to main project folder
source venv/bin/activate  # activate venv
runyard farm --jobs 4 --joblog ../log/'task_'"$SLURM_ARRAY_TASK_ID"'.log' -u \
< 'script/interference/tasks_'"$SLURM_ARRAY_TASK_ID"'.txt'
"""


@pytest.fixture(scope="module")
def yard(module_yard: Yard) -> Yard:
    module_yard.write("run.py", RUN)
    module_yard.write("tasks.txt", TASKS)
    return module_yard


def typed(yard: Yard, line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A line as a person types it, with the rig's commands and ours on the PATH."""
    ours = with_python()["PATH"].partition(":")[0]
    environ = {**os.environ, **yard.cluster.env, "PATH": f"{ours}:{yard.cluster.env['PATH']}"}
    return subprocess.run(
        ["bash", "-c", line], cwd=folder, env=environ, capture_output=True, text=True, check=False
    )


def test_parallel_with_a_task_file(yard: Yard) -> None:
    done = typed(yard, "runyard farm < tasks.txt", yard.project)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("step size") == 4
    assert "ss1em3_seed1\tstep size 0.001 seed 1\n" in done.stdout


def test_task_files_and_an_array_that_indexes_into_them(yard: Yard) -> None:
    """The array's number selects the task file and the job log; its last task has no file."""
    written = typed(
        yard,
        "runyard farm --grid 'python run.py --step-size {0.01,0.001} --seed {1..4}' "
        "--split 4 --to script/interference",
        yard.project,
    )
    assert written.returncode == 0, written.stderr
    scripts = yard.project / "script" / "interference"
    assert sorted(file.name for file in scripts.iterdir()) == ["tasks_0.txt", "tasks_1.txt"]
    home = Path(os.environ["HOME"])
    logs = home / "scratch" / "log"
    logs.mkdir(parents=True)
    (yard.project.parent / "log").mkdir()
    (scripts / "run_gpu.sh").write_text(RUN_GPU.format(home=home))
    sent = typed(yard, "sbatch --array=0-2 run_gpu.sh", scripts)
    assert sent.returncode == 0, sent.stderr
    job = sent.stdout.split()[-1]
    shown = yard.cluster.run("scontrol", "show", "job", job).stdout
    assert "MailUser=someone@domain.com" in shown
    assert "gres/gpu:fake" in shown.replace("gres:gpu", "gres/gpu")
    records = yard.cluster.wait_for(job, FINAL_STATES)
    states = {record["ArrayTaskId"]: record["JobState"] for record in records}
    assert states == {"0": "COMPLETED", "1": "COMPLETED", "2": "FAILED"}
    for index, step_size in (("0", "0.01"), ("1", "0.001")):
        log = yard.project.parent / "log" / f"task_{index}.log"
        header, *rows = log.read_text().splitlines()
        assert header.startswith("Seq\tHost\tStarttime\tJobRuntime\t")
        assert sorted(row.rpartition("\t")[2] for row in rows) == [
            f"python run.py --step-size {step_size} --seed {seed}" for seed in (1, 2, 3, 4)
        ]
        (out,) = logs.glob(f"slurm-*-{index}.out")
        assert out.read_text().count(f"step size {step_size} seed") == 4
    assert not (yard.project.parent / "log" / "task_2.log").exists()
    (error,) = logs.glob("slurm-*-2.err")
    assert "script/interference/tasks_2.txt" in error.read_text()


def test_the_documents_header_from_options(yard: Yard) -> None:
    """Of a file of 100 lines at four a GPU: 25 tasks, none too many."""
    yard.write("hundred.txt", "".join(f"python run.py --seed {one}\n" for one in range(100)))
    line = (
        "runyard farm hundred.txt --on slurm --dry-run --account=def-kim --mail-type=ALL "
        "--mail-user=someone@domain.com --gpus 1 --gpu-type fake --per-gpu 4 --mem=2G "
        "--time=0-24:00"
    )
    done = typed(yard, f"SCRATCH=$HOME/scratch {line}", yard.project)
    assert done.returncode == 0, done.stderr
    header = [one for one in done.stdout.splitlines() if one.startswith("#SBATCH")]
    assert {
        "#SBATCH --account=def-kim", "#SBATCH --mail-type=ALL",
        "#SBATCH --mail-user=someone@domain.com", "#SBATCH --gres=gpu:fake:1",
        "#SBATCH --cpus-per-task=4", "#SBATCH --mem=2048M", "#SBATCH --time=1-00:00:00",
        "#SBATCH --array=1-25",
    } <= set(header)  # fmt: skip
    (output,) = [one for one in header if "--output=" in one]
    assert f"{os.environ['HOME']}/scratch/" in output
    assert output.endswith("%A_%a.log")
    fewer = typed(yard, f"{line} -c 1", yard.project)
    assert fewer.returncode == 2
    assert "4 programs at a time in a job with 1 CPU (--cpus 1)" in fewer.stderr
    checked = yard.cluster.run("sbatch", "--test-only", stdin=done.stdout, cwd=yard.project)
    assert "to start at" in checked.stderr


def test_interactive_jobs_of_one_experiment_and_of_the_whole_job(yard: Yard) -> None:
    """The document's `salloc`, twice: a CPU, the GPU and the memory of one experiment, to time
    it; then the same resources as in the script."""
    file = yard.write(
        "runyard.yaml",
        "resources: {gpus: 1, gpu_type: fake, cpus: 4, memory: 2G, time: 24h}\n"
        "agents: {per_gpu: 4}\n",
    )
    says = "sh -c 'echo GPU=$CUDA_VISIBLE_DEVICES; scontrol show job $SLURM_JOB_ID'"
    one = typed(yard, f"runyard shell -c 1 --mem=500M --time=1:00:00 -- {says}", yard.project)
    assert "TRES=cpu=1,mem=500M," in one.stdout, one.stdout + one.stderr
    assert re.search(r"^GPU=\d$", one.stdout, re.MULTILINE)
    whole = typed(yard, f"runyard shell -- {says}", yard.project)
    assert "TRES=cpu=4,mem=2G," in whole.stdout, whole.stdout + whole.stderr
    assert re.search(r"^GPU=\d$", whole.stdout, re.MULTILINE)
    file.unlink()


# One CPU, 60 MB of memory, and of the GPU what an H200's driver said of such a program.
WATCHED = """\
import os, sys
room = bytearray(os.urandom(1000)) * 60_000
answers, gpu = os.environ["GPU_ANSWERS"], os.environ["RECORDED_GPU"]
with open(gpu + ".new", "w") as file:
    file.write(answers.replace("OURS", str(os.getpid())))
os.rename(gpu + ".new", gpu)
while not os.path.exists(sys.argv[1]):
    pass
"""


def test_watched_from_the_login_node(
    yard: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In place of panes with htop and nvidia-smi: GPU memory, host memory and load."""
    build_driver(tmp_path, monkeypatch)
    (recorded,) = SCENES["one beside a stranger"]["programs"]
    told = answers("one beside a stranger", {recorded["pid"]: "OURS"})
    monkeypatch.setenv("GPU_ANSWERS", told)
    yard.write("watched.py", WATCHED)
    line = f"runyard submit --json --gpus 1 -c 2 --mem=400M -- python watched.py {tmp_path}/seen"
    sent = typed(yard, line, yard.project)
    assert sent.returncode == 0, sent.stderr
    job = json.loads(sent.stdout)["jobs"][0]["job_id"]

    def usage() -> dict[str, float]:
        shown = typed(yard, f"runyard status {job} --live --json", yard.project)
        trials = json.loads(shown.stdout)["trials"]
        return dict(trials[0]["usage"] or {}) if trials else {}

    try:
        until(lambda: usage().get("vram_peak"), "what it uses of the GPU")
        until(lambda: usage()["cpu_seconds"] > 0.5, "its load")
        used = usage()
        own = SCENES["one beside a stranger"]["seen"]["attempts"]["0"]
        assert (used["vram_peak"], used["gpu_use"]) == (own["vram_peak"], 1.0)
        assert 60e6 < used["memory_peak"] < 300e6
        top = typed(yard, f"runyard status {job} --live", yard.project).stdout
        assert all(name in top for name in ("CPU", "MEMORY", "GPU", "GPU MEM")), top
        assert re.search(r"100% +2\.51 GB", top), top
    finally:
        (tmp_path / "seen").touch()
    yard.cluster.wait_for(job, "COMPLETED")
