"""Which project a run or a sweep belongs to, whoever says it, and where nobody does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runyard.actions.owner import Owner, find_owner, project_name
from runyard.actions.tracking import ProjectOptions
from runyard.errors import ConfigError
from runyard.home import Home
from tests.conftest import RunRunyard
from tests.live.sweeping import with_python


def test_it_is_the_folders_name(tmp_path: Path) -> None:
    folder = tmp_path / "spirals"
    folder.mkdir()
    assert project_name(folder) == "spirals"


def test_inside_a_repository_it_is_the_repositorys(tmp_path: Path) -> None:
    inside = tmp_path / "thesis" / "code" / "deep"
    inside.mkdir(parents=True)
    (tmp_path / "thesis" / ".git").mkdir()
    assert project_name(inside) == "thesis"


def test_a_repository_that_anybody_could_have_made_gives_no_name(tmp_path: Path) -> None:
    (tmp_path / "disk" / "mine").mkdir(parents=True)
    (tmp_path / "disk" / ".git").mkdir()
    (tmp_path / "disk").chmod(0o1777)
    assert project_name(tmp_path / "disk" / "mine") == "mine"


def test_a_linked_work_tree_is_a_repository_too(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / ".git").write_text("gitdir: elsewhere\n")
    assert project_name(tmp_path / "tree") == "tree"


@pytest.mark.parametrize(
    ("name", "project"),
    [("a:b#c?d%e\\f", "a-b-c-d-e-f"), ("two words", "two words"), ("x" * 200, "x" * 128),
     ("é", "é")],
)  # fmt: skip
def test_what_a_project_may_not_hold_is_replaced(name: str, project: str) -> None:
    assert project_name(Path("/nowhere") / name) == project


def test_the_root_has_no_name() -> None:
    assert project_name(Path("/")) == "uncategorized"


def owner(folder: Path, project: str | None = None, of_sweep: str | None = None) -> Owner:
    return find_owner(ProjectOptions(project=project), folder, (of_sweep, None))


def test_the_nearest_word_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runyard.yaml").write_text("tracking: {project: of-the-file, entity: team}\n")
    inside = tmp_path / "deep"
    inside.mkdir()
    assert owner(inside) == ("of-the-file", "team", "of-the-file")
    assert owner(inside, of_sweep="of-the-sweep").project == "of-the-sweep"
    monkeypatch.setenv("WANDB_PROJECT", "of-the-shell")
    assert owner(inside, of_sweep="of-the-sweep").project == "of-the-shell"
    assert owner(inside, "given", "of-the-sweep").project == "given"


def test_a_clusters_own_part_counts_on_that_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "runyard.yaml").write_text(
        "tracking: {project: everywhere}\nclusters: {narval: {tracking: {project: there}}}\n"
    )
    monkeypatch.setenv("RUNYARD_CLUSTER", "generic")
    assert owner(tmp_path).project == "everywhere"
    monkeypatch.setenv("RUNYARD_CLUSTER", "narval")
    assert owner(tmp_path).project == "there"


def test_a_mistake_in_the_file_is_told_and_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "runyard.yaml").write_text("tracking: {projekt: typo}\n")
    with pytest.raises(ConfigError, match=r'runyard\.yaml:1: "projekt"'):
        owner(tmp_path)


@pytest.mark.live
def test_every_command_keeps_to_the_project_of_runyard_yaml(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    (tmp_path / "runyard.yaml").write_text(
        "command: python train.py\ntracking: {project: my-thesis}\n"
    )
    (tmp_path / "sweep.yaml").write_text(
        "program: train.py\nmethod: grid\nparameters: {a: {values: [1]}}\n"
    )
    (tmp_path / "tasks.txt").write_text("python train.py\n")
    (tmp_path / "train.py").write_text(
        "import os\nfrom runyard import train\nprint(os.environ['WANDB_PROJECT'])\n"
        "for step in train.steps(0, 10): pass\n"
    )

    def ran(*words: str) -> str:
        done = runyard(*words, env=with_python(), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert ran("run").startswith("my-thesis\n")  # The file's command, too.
    ran("sweep", "--no-run", "sweep.yaml")
    ran("farm", "tasks.txt")
    ran("run", "-P", "another", "--", "true")
    runs = json.loads(runyard("runs", "--json").stdout)
    assert sorted(one["project"] for one in runs) == ["another", "my-thesis", "my-thesis"]
    sweeps = json.loads(runyard("runs", "--sweeps", "--json").stdout)
    assert [one["project"] for one in sweeps] == ["my-thesis", "my-thesis"]
    # How programs went is kept with the project too, by `run` and by agents.
    (courses,) = (state_folder.path / "courses" / "my-thesis").iterdir()
    assert [one["total"] for one in json.loads(courses.read_text())] == [10, 10]
    assert "nothing was measured in my-thesis" in runyard("gauge", "--list", cwd=tmp_path).stdout
