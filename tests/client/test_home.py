"""The state folder: made, checked, and refused with a reason."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from runyard.errors import StateError
from runyard.home import (
    MARKER,
    Discovery,
    Home,
    locate,
    mark_stopped,
    prepare,
    read_discovery,
    using,
    write_discovery,
    write_whole,
    written_aside,
)
from tests.conftest import RunRunyard

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")

FOUND = Discovery(
    url="http://127.0.0.1:20001",
    key="k" * 40,
    pid=4242,
    hostname="login1",
    listen="127.0.0.1",
    port=20001,
    version="0.1.0",
    started_at=1.5,
    running=True,
)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_environment_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert locate({}).path == tmp_path / ".runyard"
    assert locate({"RUNYARD_HOME": ""}).path == tmp_path / ".runyard"
    assert locate({"RUNYARD_HOME": "~/here"}).path == tmp_path / "here"
    assert locate({"RUNYARD_HOME": "a/../there"}).path == tmp_path / "there"


def test_a_user_who_is_not_there_has_no_folder() -> None:
    with pytest.raises(StateError, match="cannot tell where"):
        locate({"RUNYARD_HOME": "~no-such-user/x"})


def test_a_new_one_is_private(tmp_path: Path) -> None:
    home = Home(tmp_path / "deep" / "state")
    prepare(home)
    assert [mode(path) for path in (home.path, home.files, home.runs, home.spool)] == [0o700] * 4
    assert mode(home.path / MARKER) == 0o600
    prepare(home)


def test_one_that_others_can_read_is_closed(tmp_path: Path) -> None:
    home = Home(tmp_path / "state")
    prepare(home)
    home.path.chmod(0o755)
    prepare(home)
    assert mode(home.path) == 0o700


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    prepare(Home(tmp_path))
    assert (tmp_path / MARKER).exists()


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("...")
    tmp_path.chmod(0o755)
    with pytest.raises(StateError, match=r"not runyard's: thesis.tex") as refused:
        prepare(Home(tmp_path))
    assert refused.value.mend is not None
    assert names_in(tmp_path) == ["thesis.tex"]
    assert mode(tmp_path) == 0o755


@pytest.mark.parametrize("below", ["", "state"])
def test_a_file_is_no_folder(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match="is not a folder") as refused:
        prepare(Home(tmp_path / "file" / below))
    assert "RUNYARD_HOME" in (refused.value.mend or "")


@as_root
def test_somebody_elses_is_refused(tmp_path: Path) -> None:
    os.chown(tmp_path, NOBODY, NOBODY)
    with pytest.raises(StateError, match=r"belongs to nobody, not to you"):
        prepare(Home(tmp_path))
    os.chown(tmp_path, 54321, -1)
    with pytest.raises(StateError, match=r"belongs to user 54321"):
        prepare(Home(tmp_path))


@pytest.fixture
def nobodys_folder() -> Iterator[Path]:
    """A folder that another user can reach, as one below a private `tmp_path` could not be."""
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, NOBODY, NOBODY)
        yield Path(folder)


@pytest.mark.parametrize("below", ["", "state", "deeper/state"])
@as_root
def test_one_that_cannot_be_written(nobodys_folder: Path, below: str) -> None:
    folder = nobodys_folder
    folder.chmod(0o500)
    program = (
        "import os, sys\n"
        "from runyard import home, errors\n"
        f"os.setuid({NOBODY})\n"
        "try: home.prepare(home.Home(home.Path(sys.argv[1])))\n"
        "except errors.StateError as error: print(error.what, error.said, error.mend, sep='|')\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", program, str(folder / below)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert said.strip() == (
        f"cannot use the state folder {folder / below}|Permission denied|"
        "set RUNYARD_HOME to a folder that you can write"
    )


def test_thirty_at_once_prepare_one_folder(tmp_path: Path) -> None:
    go, path = tmp_path / "go", tmp_path / "state"
    program = (
        "import os, sys, time\n"
        "from pathlib import Path\n"
        "from runyard.home import Home, prepare\n"
        "children = []\n"
        "for _ in range(30):\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        while not os.path.exists(sys.argv[1]): pass\n"
        "        try: prepare(Home(Path(sys.argv[2])))\n"
        "        except BaseException as error: print(repr(error)); os._exit(1)\n"
        "        os._exit(0)\n"
        "    children.append(child)\n"
        "open(sys.argv[1], 'w').close()\n"
        "sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(c, 0)[1]) for c in children))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(go), str(path)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert names_in(path) == sorted([MARKER, "blobs", "files", "runs", "spool"])


def test_what_the_system_refuses_is_told_with_a_mend(tmp_path: Path) -> None:
    home = Home(tmp_path)
    for number, mend in ((28, "free some space"), (122, "quota"), (30, "read-only"), (13, "write")):
        with pytest.raises(StateError, match="cannot use the state folder") as told, using(home):
            raise OSError(number, os.strerror(number))
        assert told.value.said == os.strerror(number)
        assert mend in (told.value.mend or "")


def test_discovery_goes_to_disk_and_back(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert read_discovery(home) is None
    write_discovery(home, FOUND)
    assert read_discovery(home) == FOUND
    assert mode(home.discovery) == 0o600
    mark_stopped(home)
    stopped = read_discovery(home)
    assert stopped is not None
    assert not stopped.running
    assert (stopped.key, stopped.port) == (FOUND.key, FOUND.port)


@pytest.mark.parametrize(
    "damaged",
    ["", "{", "[]", "{}", "null", '"text"', '{"url": 1}', "\0\0\0", "\x80\xff"],
)
def test_a_damaged_discovery_file_is_none(tmp_path: Path, damaged: str) -> None:
    home = Home(tmp_path)
    home.discovery.write_bytes(damaged.encode("latin-1"))
    assert read_discovery(home) is None
    mark_stopped(home)


@pytest.mark.parametrize(("field", "value"), [("port", "x"), ("key", None), ("running", "yes")])
def test_a_field_of_the_wrong_kind_is_damage(tmp_path: Path, field: str, value: object) -> None:
    home = Home(tmp_path)
    home.discovery.write_text(json.dumps({**asdict(FOUND), field: value}))
    assert read_discovery(home) is None


def test_what_a_newer_version_adds_is_passed_over(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.discovery.write_text(json.dumps({**asdict(FOUND), "color": "blue"}))
    assert read_discovery(home) == FOUND


def test_a_file_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "file"
    write_whole(target, "old")

    def refuse(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="No space"):
        write_whole(target, "new")
    assert target.read_text() == "old"
    assert names_in(tmp_path) == ["file"]


def test_the_command_line_tells_it_in_one_message(runyard: RunRunyard, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for words, code in ((["runs"], 1), (["server", "start"], 1), (["run", "true"], 125)):
        told = runyard(*words, env={"RUNYARD_HOME": str(tmp_path / "file")})
        assert told.returncode == code
        assert told.stderr.startswith(f"runyard: the state folder {tmp_path / 'file'} is not a")
        assert "\n  try:  " in told.stderr
        assert "Traceback" not in told.stderr


def test_looking_at_the_server_leaves_nothing_in_a_folder(
    runyard: RunRunyard, tmp_path: Path
) -> None:
    folder = tmp_path / "thesis"
    folder.mkdir()
    for path in (folder, tmp_path / "missing"):
        assert runyard("server", "status", env={"RUNYARD_HOME": str(path)}).returncode == 3
        assert runyard("server", "stop", env={"RUNYARD_HOME": str(path)}).returncode == 0
    assert names_in(folder) == []
    assert not (tmp_path / "missing").exists()


def written(path: Path, content: bytes = b"new") -> int:
    with written_aside(path) as file:
        file.write(content)
    assert path.read_bytes() == content
    assert [entry.name for entry in path.parent.iterdir() if "part" in entry.name] == []
    return mode(path)


def test_a_new_file_has_the_umasks_mode_and_another_keeps_its_own(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        assert written(tmp_path / "runs.csv") == 0o640
        (tmp_path / "runs.csv").chmod(0o600)
        assert written(tmp_path / "runs.csv") == 0o600
        (tmp_path / "runs.csv").chmod(0o664)
        assert written(tmp_path / "runs.csv") == 0o664
    finally:
        os.umask(before)


def test_what_is_half_written_never_has_the_name(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text("old")
    with pytest.raises(TypeError), written_aside(tmp_path / "runs.csv") as file:
        file.writelines([b"half", None])  # type: ignore[list-item]
    assert [path.name for path in tmp_path.iterdir()] == ["runs.csv"]
    assert (tmp_path / "runs.csv").read_text() == "old"


def test_a_link_that_waits_for_a_file_written_aside_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / f".runs.csv.{os.getpid()}.part").symlink_to(victim)
    with written_aside(tmp_path / "runs.csv") as file:
        # Who can write the folder finds the name now: what is written goes where it was opened.
        (aside,) = (path for path in tmp_path.glob(".runs.csv.*.part") if not path.is_symlink())
        aside.unlink()
        aside.symlink_to(victim)
        file.write(b"new")
    assert victim.read_text() == "mine"
    (tmp_path / "other.csv").symlink_to(victim)
    with written_aside(tmp_path / "other.csv") as file:
        file.write(b"new")
    assert victim.read_text() == "mine"
    assert not (tmp_path / "other.csv").is_symlink()
