"""Targets: the files that people write. Each is read, or refused in words and with a place."""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from runyard.clusters.load import SHIPPED, load_profile
from runyard.config.check import check
from runyard.config.project_file import read_project
from runyard.config.sweep_file import read_sweep_file
from runyard.config.task_list import read_task_file, sweep_config
from runyard.errors import RunyardError
from runyard.schedulers.slurm.script_reader import translate
from runyard.search.by_number import index_of, quasi_random
from runyard.search.stopping.choose import make_stopper
from runyard.server.sweeps.serving.creation import BadSweep, SweepFile, read_file
from runyard.server.sweeps.serving.drawing import BY_NUMBER, Drawing
from tests.fuzz.limits import Finding
from tests.fuzz.mutations import as_bytes, expand

_ROOT = Path(__file__).parents[2]
_ENVIRON = {"HOME": "/home/me", "USER": "me", "SCRATCH": "/scratch/me"}


class UserFile:
    """A file in a folder of its own; a case is its text, or data that is written as JSON."""

    name = ""
    words: Sequence[str] = ()
    file = ""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="runyard-fuzz-"))

    def seeds(self) -> Sequence[Any]:
        return ()

    def place(self, case: Any) -> str:
        return self.file

    def run(self, case: Any) -> None:
        text = expand(case if isinstance(case, str) else json.dumps(case))
        (self._folder / self.file).write_bytes(as_bytes(text))
        try:
            self.read(self._folder, text)
        except RunyardError as error:
            if not error.what or self.file not in error.what + str(error.said):
                raise Finding(f"{self.file}: an error without a place", repr(error)) from error

    def read(self, folder: Path, text: str) -> None:
        raise NotImplementedError

    def renew(self) -> None:
        return

    def close(self) -> None:
        shutil.rmtree(self._folder)


class SweepFiles(UserFile):
    """Read as a command and as the server does, and drawn from."""

    name = "sweep_file"
    file = "sweep.yaml"
    words = (
        "method", "grid", "random", "bayes", "tpe", "cmaes", "qmc", "custom", "parameters",
        "values",
        "value", "min", "max", "distribution", "uniform", "log_uniform_values", "q_normal",
        "int_uniform", "categorical_w_probabilities", "beta", "inv_log_uniform", "mu", "sigma", "q",
        "probabilities", "metric", "goal", "early_terminate", "hyperband", "asha", "min_iter", "s",
        "eta", "max_iter", "run_cap", "command", "${env}", "${args}", "${interpreter}", "program",
        "runyard", "seeds", "retries", "constraints", "<<: *a", "&a", "*a", "!!binary", "--- ",
    )  # fmt: skip

    def seeds(self) -> Sequence[Any]:
        texts = [file.read_text() for file in sorted(_ROOT.glob("examples/*/sweep.yaml"))]
        return [*texts, *_SWEEPS]

    def read(self, folder: Path, text: str) -> None:
        with contextlib.suppress(BadSweep):
            self._draw(read_file(text))
        read_sweep_file(folder / self.file, needs_program=True, environ=_ENVIRON)

    @staticmethod
    def _draw(file: SweepFile) -> None:
        json.loads(file.config)
        sweep = file.sweep
        space, names = sweep.space, set[str]()
        if file.rules.draws:
            prepared = [space.place(quasi_random(len(space.leaves), 1, n)) for n in range(3)]
            drawing = Drawing(sweep, 1, prepared if sweep.method not in BY_NUMBER else ())
            most = 3 if file.size is None else min(3, file.size)
            for number in range(most):
                drawn = drawing.setting(number)
                assert drawn is not None
                json.dumps(drawn.settings)
                name = drawing.name(drawing.with_seed(drawn.settings, 0), names.__contains__)
                names.add(name)
                space.encode(drawn.settings)
                if sweep.method == "grid":
                    assert index_of(space, drawn.settings) is not None
        if sweep.early_terminate is not None:
            stopper = make_stopper(sweep.early_terminate, maximize=False)
            for trial in range(4):
                for step in range(4):
                    stopper.report(trial, step, float(trial * step))


class ProjectFiles(UserFile):
    """With the profile of a cluster that has many rules."""

    name = "runyard_yaml"
    file = "runyard.yaml"
    words = (
        "name", "command", "command_file", "sweep", "sweep_id", "job_type", "cluster", "clusters",
        "resources", "gpus", "gpu_type", "cpus", "memory", "memory_per_gpu", "time", "nodes",
        "partition", "account", "extra", "environment", "python", "venv", "modules", "container",
        "agents", "count", "chain", "each", "staging", "tracking", "checkpoints", "gauge",
        "rehearse", "profile", "distributed", "2h", "16G", "auto", "${HOME}", "$NO_SUCH", "~",
        "wandb agent a/b/c", "python train.py", "2:00:00", "1-00:00:00", "narval", "generic",
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self._profiles = [load_profile(name, folders=[SHIPPED]) for name in ("generic", "narval")]

    def seeds(self) -> Sequence[Any]:
        texts = [file.read_text() for file in sorted(_ROOT.glob("examples/*/runyard.yaml"))]
        return [*texts, *_PROJECTS]

    def read(self, folder: Path, text: str) -> None:
        for profile in self._profiles:
            request = read_project(folder, profile=profile, environ=_ENVIRON)
            checked = check(request, environ=_ENVIRON)
            assert all(refusal.what and refusal.mend for refusal in checked.refusals)


class Profiles(UserFile):
    """A cluster's profile, which a user or a group may have written."""

    name = "profile"
    file = "mine.yaml"
    words = (
        "inherits", "generic", "identity", "cluster_names", "limits", "partitions", "array_size",
        "submission", "ignored", "forbidden", "required", "storage", "local", "scratch", "network",
        "software", "modules", "containers", "accounting", "script", "gpus", "memory", "time",
        "24h",
    )  # fmt: skip

    def seeds(self) -> Sequence[Any]:
        return [file.read_text() for file in sorted(SHIPPED.glob("*.yaml"))]

    def read(self, folder: Path, text: str) -> None:
        load_profile("mine", folders=[folder, SHIPPED])


class JobScripts(UserFile):
    """A job script that `runyard init` translates. It is never refused: what is odd is noted."""

    name = "job_script"
    file = "job.sh"
    words = (
        "#SBATCH", "--gres=gpu:a100:2", "--mem-per-cpu=4G", "--time=1-0", "--array=1-9%3", "-n4",
        "module load", "source", "activate", "srun", "torchrun", "python", "export", "$1",
        "${A:-b}",
        "wandb agent", "&&", ";", "|", "<<EOF", "EOF", "\\\n", "$(hostname)", "`date`", "if", "fi",
    )  # fmt: skip

    def seeds(self) -> Sequence[Any]:
        return _SCRIPTS

    def read(self, folder: Path, text: str) -> None:
        translate(text)


class TaskLists(UserFile):
    """Command lines, one a line."""

    name = "task_list"
    file = "tasks.txt"
    words = ("--lr", "=", "{1,2}", "seed=1", "'", '"', "\\", "#", "python a.py", "++a.b=1", "1e400")

    def seeds(self) -> Sequence[Any]:
        return (
            "python a.py --lr 0.1 --seed 1\npython a.py --lr 0.2 --seed 2\n",
            "# all\npython b.py model.depth=3 +x='a b'\n\npython b.py model.depth=4\n",
        )

    def read(self, folder: Path, text: str) -> None:
        tasks = read_task_file(str(folder / self.file))
        read_file(json.loads(json.dumps(sweep_config(tasks, "/bin/sh"))))


_SWEEPS = (
    {
        "method": "bayes", "program": "train.py", "name": "s", "description": "d", "run_cap": 20,
        "metric": {"name": "loss", "goal": "minimize", "target": 0.1},
        "parameters": {
            "lr": {"distribution": "log_uniform_values", "min": 1e-5, "max": 0.1},
            "wd": {"distribution": "q_log_normal", "mu": 0, "sigma": 1, "q": 0.5},
            "size": {"values": [16, 32, 64], "probabilities": [0.2, 0.3, 0.5]},
            "opt": {"parameters": {"name": {"values": ["adam", "sgd"]}, "beta": {"value": 0.9}}},
            "n": {"distribution": "int_uniform", "min": 1, "max": 9},
            "u": {"min": 0.0, "max": 1.0}, "b": {"distribution": "beta", "alpha": 2, "beta": 3},
        },
        "early_terminate": {"type": "hyperband", "min_iter": 3, "eta": 3},
        "command": ["${env}", "${interpreter}", "${program}", "${args}"],
    },
    {
        "method": "grid", "program": "train.py", "metric": {"name": "acc", "goal": "maximize"},
        "parameters": {"a": {"values": [1, 2.5, "x", None, True, [1], {"k": 1}]},
                       "q": {"distribution": "q_uniform", "min": 0, "max": 1, "q": 0.25}},
        "early_terminate": {"type": "hyperband", "max_iter": 27, "s": 2},
    },
    {"method": "random", "program": "t.py", "parameters": {"a": {"min": 1, "max": 5}}},
    {
        "method": "tpe", "program": "t.py", "metric": [{"name": "a"}, {"name": "b",
        "goal": "maximize"}],
        "parameters": {"x": {"distribution": "normal", "mu": 0.0, "sigma": 2.0}},
        "runyard": {"seeds": 3, "retries": 2, "seed": 7, "name": "{lr}"},
    },
    "a: &a {values: [1, 2]}\nmethod: grid\nparameters: {x: *a, y: {<<: *a}}\n",
)  # fmt: skip
_PROJECTS = (
    {
        "name": "birds", "command": ["python", "train.py"], "cluster": "narval",
        "resources": {"gpus": 2, "gpu_type": "a100", "cpus": 8, "memory": "32G", "time": "2h",
                      "partition": "gpu", "account": "def-x", "nodes": 1, "extra": ["--nice=3"]},
        "environment": {"modules": ["python/3.11"], "variables": {"A": "${HOME}/b"}},
        "agents": {"count": 4, "chain": 3, "each": 2},
        "staging": {"data": ["data"]}, "tracking": {"project": "birds"},
        "clusters": {"narval": {"resources": {"memory": "64G"}}},
    },
    "command: python train.py --lr 0.1\nresources: {time: 2:00:00, memory_per_gpu: 16G}\n",
    "sweep: sweep.yaml\nagents: 8\n",
    "command: wandb agent lab/birds/abc123\nsweep_id: abc\n",
)  # fmt: skip
_SCRIPTS = (
    "#!/bin/bash -l\n#SBATCH --job-name=birds\n#SBATCH --time=1-12:00:00\n#SBATCH -A def-lab\n"
    "#SBATCH --gres=gpu:a100:2 --cpus-per-task=8\n#SBATCH --mem=32G\n#SBATCH --array=1-20%4\n"
    "module load python/3.11 cuda\nsource ~/env/bin/activate\nexport A=b\nLR=0.1\n"
    "srun --ntasks=1 python train.py --lr $LR --seed $SLURM_ARRAY_TASK_ID\n",
    "#!/bin/sh\n#SBATCH -N2 -n8\n#SBATCH --mem-per-cpu=4000\nconda activate x && "
    "torchrun --nproc_per_node 4 train.py \\\n  --a 1\napptainer exec --nv image.sif python a.py\n",
    "#!/bin/bash\n#SBATCH --gpus-per-node=4\nwandb agent --count 3 lab/birds/abc123\n",
)
FILES = (SweepFiles, ProjectFiles, Profiles, JobScripts, TaskLists)
