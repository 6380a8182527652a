"""Which project a run belongs to where nobody says it."""

from __future__ import annotations

from pathlib import Path

import pytest

from runyard.cli.run import project_name


def test_it_is_the_folders_name(tmp_path: Path) -> None:
    folder = tmp_path / "spirals"
    folder.mkdir()
    assert project_name(folder) == "spirals"


def test_inside_a_repository_it_is_the_repositorys(tmp_path: Path) -> None:
    inside = tmp_path / "thesis" / "code" / "deep"
    inside.mkdir(parents=True)
    (tmp_path / "thesis" / ".git").mkdir()
    assert project_name(inside) == "thesis"


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
