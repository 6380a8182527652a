"""The copy of the code in which jobs run: what is in it, who shares it, what comes back from it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runyard.errors import UsageError
from runyard.launch import listing, snapshot
from runyard.launch.snapshot import (
    MANIFEST,
    Changed,
    clean,
    differing,
    find_stored,
    folder_of,
    look,
    snapshots_of,
    store,
)
from runyard.node.data.bring_back import bring_back
from tests.slurm.yard import HOSTILE

FILES = {
    "train.py": "print('hello')\n",
    "lib/__init__.py": "",
    f"{HOSTILE}.py": "x = 1\n",
    "data/big.csv": "1,2,3\n",
    "uv.lock": "version = 1\n",
}


@pytest.fixture(params=["git", "no git"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A project in a folder with a hostile name, under git and not."""
    folder = tmp_path / HOSTILE / "cats"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "link.py").symlink_to("train.py")
    if request.param == "git":
        (folder / ".gitignore").write_text("data/\n")
        git(folder, "init", "--quiet")
        git(folder, "add", "train.py", "lib", "run.sh")
        git(folder, "commit", "--quiet", "--message", "first")
    return folder


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=kim", "-c", "user.email=kim@example.org"]
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True)


def test_code_is_copied_and_data_linked(project: Path, tmp_path: Path) -> None:
    (project / "train.py").write_text("print('changed, not committed')\n")
    found = look(project)
    tree = store(tmp_path / "home", found)
    assert tree.name == "cats"
    assert (tree / "train.py").read_text() == "print('changed, not committed')\n"
    assert (tree / f"{HOSTILE}.py").read_text() == "x = 1\n"
    assert (tree / "link.py").is_symlink()
    assert os.access(tree / "run.sh", os.X_OK)
    assert not (tree / ".git").exists()
    assert (tree / "data").is_symlink()
    (project / "data" / "new.csv").write_text("4\n")  # Data is the project's, as it is then.
    assert (tree / "data" / "new.csv").read_text() == "4\n"
    assert set(found.locks) == {"uv.lock"}


def test_the_same_code_is_stored_once_and_other_code_apart(project: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    first = store(home, look(project))
    inode = (first / "train.py").stat().st_ino
    assert store(home, look(project)) == first
    assert (first / "train.py").stat().st_ino == inode
    before = look(project)
    (project / "train.py").write_text("print('new')\n")
    (project / "extra.py").write_text("")
    second = store(home, look(project))
    assert second != first
    assert (first / "train.py").read_text() == "print('hello')\n"
    assert differing(before.record, look(project), home) == ["extra.py", "train.py"]
    assert find_stored(home, before.digest) == first


def test_results_of_earlier_runs_are_no_code(project: Path) -> None:
    before = look(project).digest
    for name in ("sweeps/abc/lr1/output.log", "lib/wandb/run-1/files", "__pycache__/a.pyc"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("result")
    assert look(project).digest == before


def test_large_files_are_linked_and_told_of(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "LARGEST_CODE", 1000)
    (project / "weights.py").write_text("#" * 2000)
    found = look(project)
    assert found.large == ("weights.py",)
    assert (store(tmp_path / "home", found) / "weights.py").is_symlink()


def test_a_folder_full_of_data_is_refused_with_what_to_do(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "MOST_FILES", 3)
    with pytest.raises(UsageError, match="too much to be copied") as refused:
        look(project)
    assert "--no-snapshot" in str(refused.value.mend)


def test_a_file_that_changes_meanwhile_is_not_copied_as_something_else(
    project: Path, tmp_path: Path
) -> None:
    found = look(project)
    (project / "train.py").write_text("print('half a thought')\n")
    with pytest.raises(Changed):
        store(tmp_path / "home", found)
    assert not folder_of(tmp_path / "home", found).exists()
    assert list(snapshots_of(tmp_path / "home").iterdir()) == []


def test_what_programs_leave_comes_to_the_project(project: Path, tmp_path: Path) -> None:
    tree = store(tmp_path / "home", look(project))
    (tree / "model.pt").write_text("weights")
    (tree / "out" / "deep").mkdir(parents=True)
    (tree / "out" / "deep" / "curve.csv").write_text("1")
    (tree / "lib" / "__pycache__").mkdir()
    (tree / "lib" / "__pycache__" / "x.pyc").write_text("")
    manifest = str(tree.parent / MANIFEST)
    assert sorted(bring_back(manifest)) == ["model.pt", "out/deep/curve.csv"]
    assert (project / "model.pt").read_text() == "weights"
    assert (project / "out" / "deep" / "curve.csv").read_text() == "1"
    # Another job, still at work there, finds and overwrites the same file.
    (tree / "model.pt").write_text("better")
    assert (project / "model.pt").read_text() == "better"
    assert bring_back(manifest) == []
    assert not (project / "lib" / "__pycache__").exists()


def test_jobs_that_end_together_lose_nothing(project: Path, tmp_path: Path) -> None:
    tree = store(tmp_path / "home", look(project))
    manifest = str(tree.parent / MANIFEST)
    code = (
        "import sys; from runyard.node.data.bring_back import bring_back;"
        "sys.stdin.read(); bring_back(sys.argv[1])"
    )
    for trial in range(5):
        names = [f"out-{trial}/{number}.pt" for number in range(200)]
        for name in names:
            (tree / name).parent.mkdir(exist_ok=True)
            (tree / name).write_text(name)
        jobs = [
            subprocess.Popen([sys.executable, "-c", code, manifest], stdin=subprocess.PIPE)
            for _ in range(4)
        ]
        for job in jobs:
            assert job.stdin is not None
            job.stdin.close()
        assert [job.wait(60) for job in jobs] == [0] * 4
        assert [(project / name).read_text() for name in names] == names
        assert sorted(path.name for path in (project / f"out-{trial}").iterdir()) == sorted(
            Path(name).name for name in names
        )


def test_a_file_whose_job_was_killed_while_moving_it_is_brought(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = store(tmp_path / "home", look(project))
    manifest = str(tree.parent / MANIFEST)
    claimed = "model.pt.runyard-claim-node1-77"
    (tree / claimed).write_text("weights")
    assert bring_back(manifest) == []  # The other job may be at it.
    an_hour_later = time.time() + 3600
    monkeypatch.setattr("time.time", lambda: an_hour_later)
    assert bring_back(manifest) == [claimed]
    assert (project / claimed).read_text() == "weights"


def test_what_the_user_made_meanwhile_is_not_replaced(project: Path, tmp_path: Path) -> None:
    tree = store(tmp_path / "home", look(project))
    (tree / "notes.txt").write_text("the job's")
    os.utime(tree / "notes.txt", (1, 1))
    (project / "notes.txt").write_text("the user's")
    bring_back(str(tree.parent / MANIFEST))
    assert (project / "notes.txt").read_text() == "the user's"
    (other,) = project.glob("notes.txt.from-job-*")
    assert other.read_text() == "the job's"


def test_copies_that_nobody_needs_go_and_projects_stay(project: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    used, unused = look(project), None
    store(home, used)
    (project / "train.py").write_text("print(2)\n")
    unused = look(project)
    store(home, unused)
    later = time.time() + 60
    assert clean(snapshots_of(home), {used.digest}, older_than=0) == []  # Too young.
    assert clean(snapshots_of(home), {used.digest}, older_than=later) == [unused.digest]
    assert find_stored(home, used.digest) is not None
    assert find_stored(home, unused.digest) is None
    assert (project / "data" / "big.csv").exists()  # A link was removed, not what it leads to.


def test_a_project_below_a_repository_is_its_own(tmp_path: Path) -> None:
    whole = tmp_path / "repository"
    (whole / "a").mkdir(parents=True)
    (whole / "b").mkdir()
    (whole / "a" / "one.py").write_text("")
    (whole / "b" / "two.py").write_text("")
    git(whole, "init", "--quiet")
    git(whole, "add", "--all")
    assert set(look(whole / "a").files) == {"one.py"}
    shutil.rmtree(whole / ".git")
    assert set(look(whole).files) == {"a/one.py", "b/two.py"}
