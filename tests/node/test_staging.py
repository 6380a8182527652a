"""Data to a node's disk and results back, with real files, real tar and real kills."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

import pytest

from runyard.node.data import staging
from runyard.node.data.archives import pack, unpack
from runyard.node.data.inventory import fingerprint, scan
from runyard.node.data.staging import StagingError, check_paths, fill, prepare, stage_in, stage_out

NOBODY = 65534
HOSTILE = 'it\'s a "folder"\nwith é and $(touch no)'


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    folder = tmp_path / "scratch"
    (folder / "data" / HOSTILE / "empty").mkdir(parents=True)
    for number in range(300):
        inside = folder / "data" / f"part{number % 7}"
        inside.mkdir(exist_ok=True)
        (inside / f"{number}.bin").write_bytes(os.urandom(number * 40))
    (folder / "data" / HOSTILE / "nothing").touch()
    (folder / "data" / "large").write_bytes(os.urandom(11 << 20))
    (folder / "data" / "link").symlink_to("part1/1.bin")
    (folder / "data" / "run.sh").write_text("#!/bin/sh\n")
    (folder / "data" / "run.sh").chmod(0o555)
    (folder / "data" / ("long" * 30)).write_text("a name beyond the hundred bytes of a tar header")
    (folder / "other.txt").write_text("not asked for")
    return folder


@pytest.fixture
def node(tmp_path: Path) -> Path:
    folder = tmp_path / "node"
    folder.mkdir()
    return folder


def staging_in(scratch: Path, node: Path, path: str) -> list[str]:
    module = [sys.executable, "-m", "runyard.node.data.staging"]
    return [*module, "in", str(scratch), str(node), "--", path]


def same(one: Path, other: Path) -> bool:
    return (
        subprocess.run(["diff", "-r", "--no-dereference", one, other], check=False).returncode == 0
    )


def test_what_is_named_arrives_under_the_same_paths(scratch: Path, node: Path) -> None:
    assert stage_in(scratch, node, ["data"]).startswith("unpacked 304 files, 13.3 MB")
    assert same(scratch / "data", node / "data")
    assert (node / "data" / "run.sh").stat().st_mode & 0o777 == 0o555
    assert (node / "data" / "link").readlink() == Path("part1/1.bin")
    assert not (node / "other.txt").exists()


def test_several_paths_work(scratch: Path, node: Path) -> None:
    stage_in(scratch, node, ["data/part1", "data/part2", "other.txt"])
    assert sorted(path.name for path in (node / "data").iterdir()) == ["part1", "part2"]
    assert (node / "other.txt").read_text() == "not asked for"


def test_the_archive_is_one_that_tar_reads(scratch: Path, node: Path) -> None:
    stage_in(scratch, node, ["data"])
    (archive,) = (scratch / staging.PARCELS).glob("*/data.tar*")
    subprocess.run(["tar", "-xf", archive, "-C", node / "data" / HOSTILE], check=True)
    assert same(scratch / "data", node / "data" / HOSTILE / "data") is True


def test_text_is_compressed_and_arrives_all_the_same(scratch: Path, node: Path) -> None:
    (scratch / "words").mkdir()
    for number in range(9):
        (scratch / "words" / f"{number}.txt").write_text(f"line {number}\n" * 200_000)
    stage_in(scratch, node, ["words"])
    (archive,) = (scratch / staging.PARCELS).glob("*/data.tar*")
    assert archive.name == "data.tar.gz"
    assert archive.stat().st_size < 9 * 200_000
    assert same(scratch / "words", node / "words")
    subprocess.run(["tar", "-tzf", archive], check=True, stdout=subprocess.DEVNULL)


def test_the_archive_is_used_again_until_a_source_changes(
    scratch: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for place in "abc":
        (tmp_path / place).mkdir()
    stage_in(scratch, tmp_path / "a", ["data"])
    assert "packed 304 files" in capsys.readouterr().err
    stage_in(scratch, tmp_path / "b", ["data"])
    assert capsys.readouterr().err == ""
    (scratch / "data" / "part1" / "1.bin").write_bytes(b"changed")
    stage_in(scratch, tmp_path / "c", ["data"])
    assert "packed 304 files" in capsys.readouterr().err
    assert (tmp_path / "c" / "data" / "part1" / "1.bin").read_bytes() == b"changed"


def test_tasks_of_a_node_unpack_once(scratch: Path, node: Path) -> None:
    command = staging_in(scratch, node, "data")
    tasks = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    said = [task.communicate(timeout=60)[1] for task in tasks]
    assert [task.returncode for task in tasks] == [0] * 4
    assert sum("staging: packed 304 files" in one for one in said) == 1
    assert sum("already" in one for one in said) == 3
    assert same(scratch / "data", node / "data")


def test_a_truncated_archive_is_made_anew(scratch: Path, tmp_path: Path) -> None:
    for place in "ab":
        (tmp_path / place).mkdir()
    stage_in(scratch, tmp_path / "a", ["data"])
    (archive,) = (scratch / staging.PARCELS).glob("*/data.tar*")
    os.truncate(archive, 5 << 20)
    stage_in(scratch, tmp_path / "b", ["data"])
    assert same(scratch / "data", tmp_path / "b" / "data")


def test_a_large_file_is_copied_straight(scratch: Path, node: Path) -> None:
    with (scratch / "huge").open("wb") as file:
        for place in range(0, 100 << 20, 10 << 20):
            file.seek(place)
            file.write(os.urandom(1 << 20))
    (scratch / "huge").chmod(0o440)
    name = prepare(scratch, node, ["huge", "data"])
    archive = scratch / staging.PARCELS / name / "data.tar"
    assert archive.stat().st_size < 20 << 20
    fill(scratch, node, name)
    assert same(scratch / "huge", node / "huge")
    assert same(scratch / "data", node / "data")
    assert (node / "huge").stat().st_mode & 0o777 == 0o440
    os.utime(scratch / "huge", (1, 1))
    (node / f".staged-{name}").unlink()
    with pytest.raises(StagingError, match="huge was changed while it was copied"):
        fill(scratch, node, name)


def test_a_damaged_archive_is_told_and_the_next_job_makes_it_anew(
    scratch: Path, node: Path
) -> None:
    (scratch / "words").write_text("a line\n" * 2_000_000)
    name = prepare(scratch, node, ["words"])
    archive = scratch / staging.PARCELS / name / "data.tar.gz"
    with archive.open("r+b") as file:
        file.seek(archive.stat().st_size // 2)
        file.write(bytes(1000))
    with pytest.raises(StagingError, match="the archive is damaged"):
        fill(scratch, node, name)
    stage_in(scratch, node, ["words"])
    assert same(scratch / "words", node / "words")


def test_a_node_in_trouble_leaves_the_archive_to_the_others(scratch: Path, tmp_path: Path) -> None:
    for place in "ab":
        (tmp_path / place).mkdir()
    (tmp_path / "a" / "data").write_text("a file where a folder must be")
    name = prepare(scratch, tmp_path / "a", ["data"])
    with pytest.raises(StagingError, match="could not be unpacked"):
        fill(scratch, tmp_path / "a", name)
    fill(scratch, tmp_path / "b", name)
    assert same(scratch / "data", tmp_path / "b" / "data")


def test_large_files_that_may_not_be_written_to_arrive(scratch: Path, node: Path) -> None:
    """Several processes write parts of one; root could write to it all the same."""
    (scratch / "data" / "large").chmod(0o400)
    if os.getuid() == 0:
        for path in (scratch, *scratch.rglob("*"), node):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        for above in node.parents:  # pytest's own, which only we may enter.
            if above.name.startswith("pytest-of-"):
                break
            above.chmod(0o755)
        above.chmod(0o711)
    process = os.fork()
    if not process:
        code = 1
        try:
            if os.getuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            stage_in(scratch, node, ["data"])
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    assert os.waitpid(process, 0)[1] == 0
    assert (node / "data" / "large").stat().st_mode & 0o777 == 0o400
    assert same(scratch / "data", node / "data")


def test_packing_that_was_killed_is_not_taken_for_whole(scratch: Path, node: Path) -> None:
    (scratch / "data" / "huge").write_bytes(os.urandom(64 << 20))
    command = staging_in(scratch, node, "data")
    task = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
    parcels = scratch / staging.PARCELS
    while task.poll() is None and not list(parcels.glob("*/data.tar*")):
        time.sleep(0.001)
    os.killpg(task.pid, signal.SIGKILL)
    task.wait()
    stage_in(scratch, node, ["data"])
    assert same(scratch / "data", node / "data")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/etc", "is absolute"),
        ("../other", "leaves the scratch folder"),
        ("data/../../x", "leaves the scratch folder"),
        ("nowhere", "is not in"),
        ("", "an empty path"),
    ],
)
def test_paths_that_cannot_be(scratch: Path, node: Path, path: str, said: str) -> None:
    assert said in check_paths(scratch, ["data", path])[0]
    with pytest.raises(StagingError, match=said):
        stage_in(scratch, node, ["data", path])
    assert not any(node.iterdir())


def test_a_disk_that_is_too_small_is_told_before_unpacking(
    scratch: Path, node: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.statvfs(node)
    values = list(real)
    values[4] = 3  # f_bavail
    monkeypatch.setattr(os, "statvfs", lambda _path: os.statvfs_result(values))
    with pytest.raises(StagingError, match="free, and the data needs"):
        stage_in(scratch, node, ["data"])
    assert not any(node.iterdir())


def test_a_failure_is_the_commands_exit_code(scratch: Path, node: Path) -> None:
    command = staging_in(scratch, node, "lost")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "staging failed: lost is not in" in done.stderr


def test_results_come_back_under_the_jobs_name(scratch: Path, node: Path) -> None:
    (node / "out" / "deep").mkdir(parents=True)
    (node / "out" / "deep" / "a.csv").write_text("1")
    (node / "b.txt").write_text("2")
    (node / "c.tmp").write_text("3")
    said = stage_out(scratch, node, "17_3", ["out", "*.txt"])
    assert said.startswith("2 results to")
    back = scratch / "results" / "17_3"
    assert (back / "out" / "deep" / "a.csv").read_text() == "1"
    assert (back / "b.txt").read_text() == "2"
    assert not (back / "c.tmp").exists()


def test_newer_results_are_never_overwritten(scratch: Path, node: Path) -> None:
    (node / "a.txt").write_text("old")
    os.utime(node / "a.txt", (1, 1))
    there = scratch / "results" / "5" / "a.txt"
    there.parent.mkdir(parents=True)
    there.write_text("newer")
    assert "left alone" in stage_out(scratch, node, "5", ["a.txt"])
    assert there.read_text() == "newer"
    (node / "a.txt").write_text("newest")
    stage_out(scratch, node, "5", ["a.txt"])
    assert there.read_text() == "newest"


def test_no_results_are_told(scratch: Path, node: Path) -> None:
    assert "no results came back" in stage_out(scratch, node, "5", ["*.csv"])


def test_an_error_in_one_of_the_processes_is_the_error(scratch: Path, node: Path) -> None:
    entries = scan(str(scratch), ["data"])
    index = pack(str(scratch), entries, str(node / "x.tar"), 2, lambda _count: None)
    blocked = node / "into"
    blocked.mkdir()
    (blocked / "data").write_text("a file where a folder must be")
    with pytest.raises(OSError, match="data"):
        unpack(str(scratch), str(node / "x.tar"), index, str(blocked), 2, lambda _count: None)


def test_the_fingerprint_hangs_on_the_files_alone(scratch: Path) -> None:
    before = fingerprint(scan(str(scratch), ["data"]))
    (scratch / "other.txt").write_text("something else")
    assert fingerprint(scan(str(scratch), ["data"])) == before
    (scratch / "data" / "run.sh").chmod(0o755)
    assert fingerprint(scan(str(scratch), ["data"])) != before
