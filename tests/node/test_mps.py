"""MPS, started and ended around an agent's programs."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard.node.attempt.keeper import Keeper, start_keeper
from runyard.node.devices.mps import NoMps, end_stale, start_mps
from runyard.node.system import processes
from tests.node.recorded_driver import install_mps


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[Keeper]:
    started = start_keeper(str(tmp_path / "spool"), lambda _spool: None)
    yield started
    started.dismiss()
    os.waitpid(started.pid, 0)


@pytest.fixture(autouse=True)
def short_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("m")
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("runyard.node.devices.mps._LONGEST_FOLDER", 200)
    return folder


def test_it_runs_for_the_agents_gpus_in_a_folder_of_its_own(
    tmp_path: Path, keeper: Keeper, monkeypatch: pytest.MonkeyPatch, short_folder: Path
) -> None:
    install_mps(tmp_path, monkeypatch)
    # Of a machine with four, this agent has two; numbers would mean others to the programs.
    mps = start_mps(
        ("GPU-a", "3"), os.environ, keeper, lambda: ["GPU-a", "GPU-b", "GPU-c", "GPU-d"]
    )
    folder = Path(mps.folder)
    assert folder.parent.parent == short_folder
    for private in (folder.parent, folder, folder / "pipe"):
        assert stat.S_IMODE(private.stat().st_mode) == 0o700
    assert (folder / "log" / "gpus").read_text() == "GPU-a,GPU-d\n"
    for own, uuids in (("3", "GPU-d"), ("GPU-a,3", "GPU-a,GPU-d")):
        settings = mps.settings({"CUDA_VISIBLE_DEVICES": own, "RUNYARD_SLOT": "1"})
        assert settings["CUDA_VISIBLE_DEVICES"] == uuids
        assert settings["CUDA_MPS_PIPE_DIRECTORY"] == str(folder / "pipe")
    assert "CUDA_VISIBLE_DEVICES" not in mps.settings({"RUNYARD_SLOT": "1"})
    mps.end(keeper)
    assert not processes.marked([mps.token])
    assert not folder.exists()


def test_what_a_dead_agent_left_is_ended_by_the_next(
    tmp_path: Path, keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_mps(tmp_path, monkeypatch)
    mps = start_mps(("0",), os.environ, keeper)
    above = str(Path(mps.folder).parent)
    end_stale(above)
    assert processes.marked([mps.token])  # Its agent, who is us, lives.
    note = Path(mps.folder) / "daemon.json"
    began = str(processes.identity()["pid_began"])
    note.write_text(note.read_text().replace(f'"agent_began": "{began}"', '"agent_began": "1"'))
    end_stale(above)
    os.waitpid(mps.pid, 0)
    assert not processes.marked([mps.token])
    assert not Path(mps.folder).exists()


def test_why_it_cannot_be_had(
    tmp_path: Path, keeper: Keeper, monkeypatch: pytest.MonkeyPatch, short_folder: Path
) -> None:
    with pytest.raises(NoMps, match="nvidia-cuda-mps-control is not on the PATH"):
        start_mps(("0",), {**os.environ, "PATH": "/nowhere"}, keeper)
    install_mps(tmp_path, monkeypatch)
    with pytest.raises(NoMps, match="the driver does not tell the UUIDs of GPUs 2, 3"):
        start_mps(("2", "3"), os.environ, keeper, list)
    with pytest.raises(NoMps, match="CUDA_MPS_PIPE_DIRECTORY is set"):
        start_mps(("0",), {**os.environ, "CUDA_MPS_PIPE_DIRECTORY": "/x"}, keeper)
    with pytest.raises(NoMps, match="does not start: An instance of this daemon is already"):
        start_mps(("0",), {**os.environ, "FAKE_MPS_FAILS": "1"}, keeper)
    assert list((short_folder / f"runyard-mps-{os.getuid()}").iterdir()) == []


def test_a_folder_that_others_may_enter_is_not_trusted(
    tmp_path: Path, keeper: Keeper, monkeypatch: pytest.MonkeyPatch, short_folder: Path
) -> None:
    install_mps(tmp_path, monkeypatch)
    (short_folder / f"runyard-mps-{os.getuid()}").mkdir(mode=0o755)
    with pytest.raises(NoMps, match="is not a folder of yours alone"):
        start_mps(("0",), os.environ, keeper)
