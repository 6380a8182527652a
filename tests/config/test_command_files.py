"""The command of a project: in a text file of its own, and as the worker of a sweep."""

from __future__ import annotations

from pathlib import Path

import pytest

from runyard.clusters.load import load_profile
from runyard.config.project_file import read_project
from runyard.config.project_look import look
from runyard.config.request import Request
from runyard.config.worker_command import Worker, read_worker
from runyard.errors import ConfigError, NotFoundError
from runyard.schedulers.slurm.script_reader import SCRIPTS
from tests.config.test_project_file import flags, read


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "my project"
    folder.mkdir()
    return folder


def read_project_text(project: Path, text: str) -> Request:
    (project / "runyard.yaml").write_text(text)
    profile = load_profile("generic")
    try:
        return read_project(project, profile=profile, needs_command=True)
    finally:
        (project / "runyard.yaml").unlink()


@pytest.mark.parametrize(
    ("content", "command"),
    [
        ("python train.py --a 1\n", ["python", "train.py", "--a", "1"]),
        ("train.py \\\n  --a 'b c' \\\n\n  --d\n", ["python", "train.py", "--a", "b c", "--d"]),
        ("# mine\n-m package.train --x 1,2\n", ["python", "-m", "package.train", "--x", "1,2"]),
        ("./run.sh\n--flag\n", ["./run.sh", "--flag"]),
    ],
)
def test_the_command_may_stand_in_a_text_file(
    project: Path, content: str, command: list[str]
) -> None:
    (project / "experiment_configurations.txt").write_text(content)
    request = read(project, "", flags("-C", "experiment_configurations.txt"))
    assert list(request.command or ()) == command


@pytest.mark.parametrize("name", ["experiment_configurations.txt", "experiment_configuration.txt"])
@pytest.mark.parametrize("place", [".", "hpc_files"])
def test_where_nobody_says_what_to_run_it_is_in_the_usual_file(
    project: Path, place: str, name: str
) -> None:
    (project / "hpc_files").mkdir()
    (project / place / name).write_text("train.py --a 1\n")
    stands = project / "hpc_files"  # Where submit scripts of old are typed.
    found = read_project(stands, profile=load_profile("generic"), needs_command=True)
    assert (found.folder, found.project_name) == (project, project.name)
    assert list(found.command or ()) == ["python", "train.py", "--a", "1"]
    # What is said wins, and who needs no command is not troubled by a file that cannot be read.
    said = read_project_text(project, "command: ./mine\n")
    assert list(said.command or ()) == ["./mine"]
    (project / place / name).write_text("it's\n")
    assert read(project, "").command is None


def test_a_draft_of_the_projects_file_names_the_usual_file(project: Path) -> None:
    (project / "hpc_files").mkdir()
    (project / "hpc_files" / "experiment_configuration.txt").write_text("train.py\n")
    settings = look(project, SCRIPTS).settings
    assert settings["command_file"] == "hpc_files/experiment_configuration.txt"


def test_a_command_file_is_named_from_where_the_user_stands(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place, text in ((project, "root"), (project / "sub", "sub")):
        place.mkdir(exist_ok=True)
        (place / "c.txt").write_text(f"python {text}.py\n")
    monkeypatch.chdir(project / "sub")
    assert list(read(project, "", flags("-C", "c.txt")).command or ()) == ["python", "sub.py"]
    assert list(read(project, "command_file: c.txt\n").command or ()) == ["python", "root.py"]


def test_a_command_file_that_is_not_there_is_told(project: Path) -> None:
    with pytest.raises(NotFoundError, match=r"--configs no\.txt: there is no file"):
        read(project, "", flags("-C", "no.txt"))
    (project / "a.txt").write_text("# nothing\n")
    with pytest.raises(ConfigError, match="holds no command"):
        read(project, "command_file: a.txt\n")


WORKERS = [
    ("wandb agent ada/birds/old1", Worker(("ada", "birds"), "old1")),
    ("wandb agent --count 1 ada/birds/old1", Worker(("ada", "birds"), "old1", 1)),
    ("python -m wandb agent --count=3 -p birds -e ada old1", Worker(("ada", "birds"), "old1", 3)),
    ("wandb agent old1 --project birds -f", Worker(("birds",), "old1")),
    ("wandb agent", None),
    ("wandb sweep sweep.yaml", None),
    ("python agent.py ada/birds/old1", None),
]


@pytest.mark.parametrize(("command", "worker"), WORKERS)
def test_a_worker_of_a_sweep_is_known_by_its_words(command: str, worker: Worker | None) -> None:
    assert read_worker(command.split()) == worker


def test_the_sweep_id_that_is_given_replaces_the_last_part_of_the_worker(project: Path) -> None:
    (project / "worker.txt").write_text("wandb agent --count 1 \\\n  ada/birds/old1\n")
    given = read(project, "", flags("-C", "worker.txt", "-w", "new2"))
    assert (given.sweep_id, given.command) == ("ada/birds/new2", None)
    assert (given.agents.trials_each, given.job_type) == (1, "sweep")
    whole = read(
        project, "", flags("-C", "worker.txt", "-w", "eve/cats/new2", "--trials-each", "5")
    )
    assert (whole.sweep_id, whole.agents.trials_each) == ("eve/cats/new2", 5)
    assert read(project, "command: wandb agent ada/birds/old1\n").sweep_id == "ada/birds/old1"
