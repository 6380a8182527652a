"""The command of a project: in a text file of its own, and as the worker of a sweep."""

from __future__ import annotations

from pathlib import Path

import pytest

from runyard.config.worker_command import Worker, read_worker
from runyard.errors import ConfigError, NotFoundError
from tests.config.test_project_file import flags, read


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "my project"
    folder.mkdir()
    return folder


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
