"""A job's folder on a node's disk: held, shared, removed however the job ends."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runyard.node.data.cleaning import clean
from runyard.node.data.local_folder import LocalFolder, left_overs, make_private, sweep

HOLDER = """
import sys, time
from runyard.node.data.local_folder import LocalFolder
folder = LocalFolder(sys.argv[1], sys.argv[2])
folder.hold()
if "remover" in sys.argv:
    folder.remove_when_alone()
open(folder.path + "/data", "w").write("x")
print("held", flush=True)
sys.stdin.read()
if "release" in sys.argv:
    folder.release()
"""


def holder(base: Path, name: str, *words: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, base, name, *words],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def wait_gone(path: Path) -> None:
    end = time.monotonic() + 180
    while path.exists():
        assert time.monotonic() < end, f"{path} is still there"
        time.sleep(0.01)


def test_it_is_private_and_gone_after_the_last_of_the_jobs_tasks(tmp_path: Path) -> None:
    base = tmp_path / "me"
    first, second = (LocalFolder(str(base), "17") for _ in range(2))
    first.hold()
    second.hold()
    assert (base / "17").stat().st_mode & 0o777 == 0o700
    first.release()
    assert (base / "17").is_dir()
    second.release()
    assert not (base / "17").exists()
    assert list(base.iterdir()) == []


def test_a_killed_jobs_folder_is_removed_by_the_process_beside_it(tmp_path: Path) -> None:
    process = holder(tmp_path / "me", "17", "remover")
    process.kill()
    process.communicate()
    wait_gone(tmp_path / "me" / "17")


def test_the_next_job_removes_what_a_dead_one_left_and_nothing_of_a_living_one(
    tmp_path: Path,
) -> None:
    base = tmp_path / "me"
    dead, alive = holder(base, "dead"), holder(base, "alive")
    dead.kill()
    dead.communicate()
    assert list(left_overs(str(base))) == [str(base / "dead")]
    assert sweep(str(base)) == [str(base / "dead")]
    assert [path.name for path in base.iterdir()] == ["alive"]
    alive.kill()
    alive.communicate()


def test_a_folder_that_is_just_being_made_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "young").mkdir()
    assert sweep(str(tmp_path)) == []
    os.utime(tmp_path / "young", (1, 1))
    assert sweep(str(tmp_path)) == [str(tmp_path / "young")]


def test_folders_that_forbid_writing_are_removed_too(tmp_path: Path) -> None:
    folder = LocalFolder(str(tmp_path / "me"), "17")
    folder.hold()
    closed = Path(folder.path) / "closed"
    closed.mkdir()
    (closed / "file").write_text("x")
    closed.chmod(0o500)
    folder.release()
    assert list((tmp_path / "me").iterdir()) == []


def test_a_base_of_somebody_else_is_refused(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "me").symlink_to(elsewhere)
    with pytest.raises(PermissionError, match="somebody else"):
        make_private(str(tmp_path / "me"))


@pytest.mark.parametrize("dry_run", [False, True])
def test_nothing_is_removed_behind_a_link_that_has_the_name_of_the_base(
    tmp_path: Path, dry_run: bool
) -> None:
    """Whoever makes that link could have the next job remove the user's own folders."""
    work = tmp_path / "home" / "thesis"
    work.mkdir(parents=True)
    os.utime(work, (1, 1))
    (tmp_path / "me").symlink_to(tmp_path / "home")
    assert list(left_overs(str(tmp_path / "me"))) == []
    assert sweep(str(tmp_path / "me")) == []
    assert clean(str(tmp_path / "me"), dry_run=dry_run) == {"before": [], "after": [], "held": []}
    assert work.is_dir()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder to somebody else")
def test_nothing_is_removed_in_somebody_elses_base(tmp_path: Path) -> None:
    work = tmp_path / "me" / "link"
    work.mkdir(parents=True)
    os.utime(work, (1, 1))
    os.chown(tmp_path / "me", 54321, -1)
    assert sweep(str(tmp_path / "me")) == []
    assert work.is_dir()


@pytest.fixture
def squatted(tmp_path: Path) -> str:
    """The usual base, made first by somebody else: a link of theirs is as little ours."""
    (tmp_path / "theirs").mkdir()
    (tmp_path / "me").symlink_to(tmp_path / "theirs")
    return str(tmp_path / "me")


def test_where_somebody_else_took_the_name_all_tasks_share_another_folder(
    squatted: str, tmp_path: Path
) -> None:
    first = LocalFolder(squatted, "17")
    first.hold()
    assert re.fullmatch(rf"{squatted}\.runyard-[0-9a-f]{{16}}/17", first.path)
    assert Path(first.path).parent.stat().st_mode & 0o777 == 0o700
    assert list((tmp_path / "theirs").iterdir()) == []
    # Another task, another job, and who only looks where it is.
    second, other = LocalFolder(squatted, "17"), LocalFolder(squatted, "18")
    assert second.path == first.path
    second.hold()
    other.hold()
    assert second.path == first.path
    assert Path(other.path).parent == Path(first.path).parent
    # Nor does the job lose it when the name is free again.
    (tmp_path / "me").unlink()
    assert LocalFolder(squatted, "17").path == first.path
    assert LocalFolder(squatted, "19").path == f"{squatted}/19"
    for folder in (first, second, other):
        folder.release()
    assert not Path(first.path).exists()


def test_tasks_that_begin_at_once_make_one_other_folder(squatted: str, tmp_path: Path) -> None:
    words = [sys.executable, "-c", HOLDER, squatted, "17"]
    tasks = [subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
             for _ in range(4)]  # fmt: skip
    for task in tasks:
        assert task.stdout is not None
        assert task.stdout.readline() == "held\n"
    assert len(list(tmp_path.glob("me.runyard-*"))) == 1
    for task in tasks:
        task.communicate()


def test_left_overs_are_removed_from_the_other_folder_too(squatted: str, tmp_path: Path) -> None:
    dead = holder(Path(squatted), "17")
    dead.kill()
    dead.communicate()
    (folder,) = tmp_path.glob("me.runyard-*/17")
    similar = tmp_path / "me.runyard-data" / "mine"
    similar.mkdir(parents=True)
    os.utime(similar, (1, 1))
    assert clean(squatted, dry_run=False)["before"] == [str(folder)]
    assert list(folder.parent.iterdir()) == []
    assert similar.is_dir()


def test_tasks_that_come_and_go_at_once_never_lose_a_held_folder(tmp_path: Path) -> None:
    program = (
        "import os, sys\n"
        "from runyard.node.data.local_folder import LocalFolder\n"
        "for _ in range(300):\n"
        "    folder = LocalFolder(sys.argv[1], 'job')\n"
        "    folder.hold()\n"
        "    open(folder.path + f'/{os.getpid()}', 'w').close()\n"
        "    assert os.path.exists(folder.path + f'/{os.getpid()}')\n"
        "    folder.release()\n"
    )
    tasks = [subprocess.Popen([sys.executable, "-c", program, tmp_path / "me"]) for _ in range(4)]
    assert [task.wait(180) for task in tasks] == [0] * 4
    assert list((tmp_path / "me").iterdir()) == []
