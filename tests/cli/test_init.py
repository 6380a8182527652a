"""`runyard init`: looks at the project and the cluster, and writes a file that can be read."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from runyard.clusters.load import SHIPPED, load_profile
from runyard.config.project_draft import project_draft
from runyard.config.project_file import read_project
from runyard.config.project_look import look
from runyard.schedulers.slurm.script_reader import SCRIPTS
from tests.conftest import RunRunyard
from tests.schedulers.test_script_reader import SCRIPT


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "my project"
    folder.mkdir()
    return folder


def test_a_job_script_a_program_and_a_sweep_become_a_file(
    runyard: RunRunyard, project: Path
) -> None:
    (project / "job.sh").write_text(SCRIPT)
    (project / "train.py").write_text("import wandb\nwandb.init()\n")
    (project / "sweep.yaml").write_text("method: grid\nparameters: {a: {values: [1]}}\n")
    done = runyard("init", "--cluster", "cedar", cwd=project)
    assert done.returncode == 0, done.stderr
    request = read_project(project, environ={"HOME": "/home/me"})
    assert request.profile.name == "cedar"
    assert request.command == (
        "python", "train.py", "--data", "${SLURM_TMPDIR}/d", "--name", "a b", "--x", "1,2",
    )  # fmt: skip
    assert request.sweep_file == "sweep.yaml"
    assert request.resources.gpu_type == "v100l"
    assert request.environment.path == "/home/me/env"
    text = (project / "runyard.yaml").read_text()
    assert "# from job.sh" in text
    assert "0123456789" not in text + done.stdout + done.stderr
    assert "WANDB_API_KEY is left out" in done.stderr


@pytest.mark.parametrize(
    ("files", "kind", "build"),
    [
        ({"uv.lock": "", "pyproject.toml": ""}, "uv", True),
        ({"pixi.toml": ""}, "pixi", True),
        ({"environment.yml": "name: torch\n"}, "conda", True),
        ({"requirements.txt": ""}, "venv", True),
        ({"Pipfile": ""}, "venv", True),
        ({".venv/bin/python": "", "requirements.txt": ""}, "venv", False),
        ({"image.sif": ""}, "apptainer", False),
        ({}, "none", False),
    ],
)
def test_the_environment_is_what_the_lock_files_mean(
    project: Path, files: dict[str, str], kind: str, build: bool
) -> None:
    for name, text in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    found = look(project, SCRIPTS)
    generic = load_profile("generic", folders=[SHIPPED])
    (project / "runyard.yaml").write_text(project_draft(found.settings, found.reasons, generic))
    environment = read_project(project, profile=generic).environment
    assert (environment.kind, environment.build) == (kind, build)
    if kind == "conda":
        assert environment.name == "torch"


def test_nothing_is_written_over_without_force(runyard: RunRunyard, project: Path) -> None:
    (project / "runyard.yaml").write_text("command: mine\n")
    refused = runyard("init", cwd=project)
    assert refused.returncode == 2
    assert "there is a runyard.yaml here already" in refused.stderr
    assert (project / "runyard.yaml").read_text() == "command: mine\n"
    shown = runyard("init", "--dry-run", cwd=project)
    assert shown.returncode == 0
    assert "# command: python train.py" in shown.stdout
    assert (project / "runyard.yaml").read_text() == "command: mine\n"
    assert runyard("init", "--force", cwd=project).returncode == 0
    assert "mine" not in (project / "runyard.yaml").read_text()


def test_what_the_cluster_would_refuse_is_told_at_once(runyard: RunRunyard, project: Path) -> None:
    (project / "job.sh").write_text("#SBATCH --time=30 --gres=gpu:v100l:1\n")
    done = runyard("init", "--cluster", "narval", cwd=project, env={"SCRATCH": "/scratch"})
    assert done.returncode == 0
    assert "narval: account is missing" in done.stderr
    assert "narval: there is no GPU of type v100l" in done.stderr
    assert "narval wants it: jobs are charged to an allocation" in (
        (project / "runyard.yaml").read_text()
    )


def test_what_was_found_as_data(runyard: RunRunyard, project: Path) -> None:
    (project / "train.py").touch()
    (project / "main.py").touch()
    done = runyard("init", "--dry-run", "--json", cwd=project)
    found = json.loads(done.stdout)
    assert found["settings"]["command"] == "python train.py"
    assert found["written"] is False
    assert "could also be python main.py" in done.stderr
    assert not (project / "runyard.yaml").exists()


def test_on_a_terminal_it_asks_what_it_cannot_see(
    runyard: RunRunyard, project: Path, state_folder: object
) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "runyard", "init"],
        cwd=project, stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True,
    )  # fmt: skip
    os.close(theirs)
    seen = _until(ours, "the command of one run")
    os.write(ours, b"python a.py --x 'b c'\n")
    seen += _until(ours, "[generic]")
    os.write(ours, b"narvall\n")
    seen += _until(ours, "did you mean narval?")
    os.write(ours, b"narval\n")
    seen += _until(ours, "account (")
    os.write(ours, b"def-me\n")
    _until(ours, "wrote")
    assert process.wait(timeout=180) == 0
    os.close(ours)
    request = read_project(project)
    assert request.command == ("python", "a.py", "--x", "b c")
    assert (request.profile.name, request.resources.account) == ("narval", "def-me")


def _until(handle: int, words: str) -> str:
    seen = ""
    while words not in seen:
        try:
            part = os.read(handle, 4096).decode("utf-8", "replace")
        except OSError:
            part = ""
        assert part, f"it ended before it said {words!r}:\n{seen}"
        seen += part
    return seen


AGENTS = """\
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --account=def-someuser
srun wandb agent ada/birds/abc123
"""
SWEEP = "program: train.py\nmethod: grid\nparameters: {lr: {values: [1]}}\n"


def write(project: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)


@pytest.mark.parametrize("place", ["sweep.yaml", "config/sweep.yaml", "configs/exp/search.yml"])
def test_a_sweep_file_is_found_where_projects_keep_it(project: Path, place: str) -> None:
    write(project, {place: SWEEP, "train.py": "", "config/model.yaml": "a: 1\n"})
    assert look(project, SCRIPTS).settings["sweep"] == place


def test_a_script_of_agents_becomes_agents_for_the_projects_sweep(project: Path) -> None:
    write(project, {"slurm/agents.sh": AGENTS, "config/sweep.yaml": SWEEP, "train.py": ""})
    found = look(project, SCRIPTS)
    assert found.settings == {
        "sweep": "config/sweep.yaml", "agents.count": 2, "agents.form": "nodes",
    }  # fmt: skip
    assert found.notes == [
        "slurm/agents.sh: the sweep ada/birds/abc123 is on another server; `runyard submit` makes "
        "a new one of config/sweep.yaml",
        "slurm/agents.sh: --account=def-someuser is a placeholder, and is left out",
    ]


def test_a_program_that_makes_a_sweep_and_starts_agents_gives_way_to_ours(project: Path) -> None:
    header = "#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --cpus-per-task=2\n"
    files = {"example.sbatch": f"{header}python run.py\n", "sweep.yaml": SWEEP, "train.py": ""}
    write(project, {**files, "run.py": "sweep_id = wandb.sweep(config_dict)\n"})
    found = look(project, SCRIPTS)
    assert found.settings == {
        "sweep": "sweep.yaml", "resources.cpus": 2, "agents.count": 2, "agents.form": "nodes",
    }  # fmt: skip
    assert found.notes == [
        "example.sbatch: run.py makes a sweep and starts its agents; `runyard submit` does so with "
        "sweep.yaml"
    ]
    # One that trains, over two nodes, does not.
    write(project, {"run.py": "train()\n"})
    assert look(project, SCRIPTS).settings["resources.nodes"] == 2


def test_the_program_of_a_script_in_a_folder_is_named_from_the_projects(project: Path) -> None:
    script = "#SBATCH -t 1\npython fit.py --lr 0.1\n"
    write(project, {"jobs/fit.sh": script, "jobs/fit.py": "", "train.py": ""})
    assert look(project, SCRIPTS).settings["command"] == "python jobs/fit.py --lr 0.1"
    write(project, {"jobs/fit.sh": script.replace("fit.py", "gone.py")})
    assert any("gone.py is not in" in note for note in look(project, SCRIPTS).notes)


def test_of_several_job_scripts_the_one_that_trains_is_translated(project: Path) -> None:
    write(project, {"a_data.sh": "#SBATCH -t 1\npython prepare.py\n", "prepare.py": "",
                    "b_train.sh": "#SBATCH -t 2\npython fit.py\n", "fit.py": ""})  # fmt: skip
    found = look(project, SCRIPTS)
    assert found.settings["command"] == "python fit.py"
    assert found.notes == ["b_train.sh was translated, of several job scripts (a_data.sh)"]


def test_where_no_program_is_found_that_is_said(project: Path) -> None:
    assert look(project, SCRIPTS).notes == [
        "no program was found: write command: or sweep: before you submit"
    ]


def test_what_is_wrong_with_the_sweep_file_is_said_at_once(
    runyard: RunRunyard, project: Path
) -> None:
    write(project, {"sweep.yaml": "method: grid\nparameters: {lr: {min: 1}}\n"})
    done = runyard("init", "--yes", cwd=project)
    assert done.returncode == 0
    assert "sweep.yaml:2: min without max" in done.stderr


@pytest.mark.parametrize(
    "files",
    [
        {"slurm/agents.sh": AGENTS, "config/sweep.yaml": SWEEP, "train.py": ""},
        {"job.sh": "#SBATCH -A <account>\nX=3\nsrun -n 1 python train.py --x $X > log\n",
         "train.py": ""},
    ],
)  # fmt: skip
def test_what_init_writes_can_be_submitted(
    runyard: RunRunyard, project: Path, files: dict[str, str]
) -> None:
    write(project, files)
    assert runyard("init", "--yes", cwd=project).returncode == 0
    shown = runyard("submit", "--dry-run", cwd=project)
    assert shown.returncode == 0, shown.stderr
