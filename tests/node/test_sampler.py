"""What programs use, seen from beside them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from runyard.node.gpus import ask_driver, refusing
from runyard.node.processes import MARK
from runyard.node.rows import RowCount
from runyard.node.sampling import SAMPLER
from runyard.node.wandb_file import RecordFile, histories, read_rows
from tests.node.fake_driver import UUID, build_driver

# Takes 60 MB and a second of CPU, its child 40 MB; says so, and waits.
PROGRAM = """\
import os, subprocess, sys, time
if len(sys.argv) == 1:
    child = subprocess.Popen([sys.executable, __file__, "child"], stdout=subprocess.PIPE, text=True)
    child.stdout.readline()
room = bytearray(os.urandom(1000)) * (40_000 if len(sys.argv) > 1 else 60_000)
while time.process_time() < 0.5: pass
print("ready", flush=True)
sys.stdin.read()
"""


@contextmanager
def program(folder: Path) -> Iterator[subprocess.Popen[str]]:
    file = folder / "program.py"
    file.write_text(PROGRAM)
    with subprocess.Popen(
        [sys.executable, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == "ready\n"
        yield started
        assert started.stdin is not None
        started.stdin.close()


def sample(pid: int, folder: Path, gpus: list[str]) -> dict[str, Any]:
    """What the sampler says of a program at its first look."""
    with subprocess.Popen(SAMPLER, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as sampler:
        assert sampler.stdin is not None
        assert sampler.stdout is not None
        about = {"began": "a", "pid": pid, "folder": str(folder), "run": "abc", "gpus": gpus}
        sampler.stdin.write(json.dumps(about).encode() + b"\n")
        sampler.stdin.flush()
        told: dict[str, Any] = json.loads(sampler.stdout.readline())
        sampler.stdin.close()  # It ends when nobody is there any more.
        assert sampler.wait(180) == 0
    return told


def test_a_program_is_measured_with_its_children(tmp_path: Path) -> None:
    with program(tmp_path) as started:
        seen = sample(started.pid, tmp_path, [])["attempts"]["a"]
    assert 100e6 < seen["memory_peak"] < 250e6
    assert 0.9 < seen["cpu_seconds"] < 60
    assert "vram_peak" not in seen


def test_what_srun_started_is_slurms_child_and_is_measured_all_the_same(tmp_path: Path) -> None:
    """A double of srun, which only has its name: the rank beside it is nobody's child of its own,
    as below slurmstepd, and carries the attempt's mark."""
    srun = tmp_path / "srun"
    srun.write_text("#!/bin/sh\nread word\n")
    srun.chmod(0o700)
    (tmp_path / "program.py").write_text(PROGRAM)
    with (
        subprocess.Popen([srun], stdin=subprocess.PIPE) as started,
        subprocess.Popen(
            [sys.executable, tmp_path / "program.py", "rank"], env={**os.environ, MARK: "a"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        ) as rank,
    ):  # fmt: skip
        assert rank.stdin is not None
        assert rank.stdout is not None
        assert rank.stdout.readline() == b"ready\n"
        seen = sample(started.pid, tmp_path, [])["attempts"]["a"]
        rank.stdin.close()
    assert 40e6 < seen["memory_peak"] < 150e6


def test_gpu_memory_is_that_of_the_program_not_of_the_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = build_driver(tmp_path, monkeypatch)
    with program(tmp_path) as started:
        children = Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()
        gpu.write_text(f"{children[0]} 3000000000\n{os.getpid()} 9000000000\n")
        told = sample(started.pid, tmp_path, [UUID])
    seen = told["attempts"]["a"]
    assert (seen["vram_peak"], seen["gpu_use"], seen["gpu"]) == (3000000000, 0.75, UUID)
    assert seen["vram_total"] == 80 << 30
    assert told["gpus"][UUID]["used"] == 12000000000
    assert told["gpus"][UUID]["total"] == 80 << 30


def test_a_program_that_is_tied_to_no_gpu_is_found_on_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = build_driver(tmp_path, monkeypatch)
    with program(tmp_path) as started:
        gpu.write_text("".join(f"{pid} 5\n" for pid in range(1, 400)) + f"{started.pid} 7\n")
        seen = sample(started.pid, tmp_path, [])["attempts"]["a"]
    assert seen["vram_peak"] >= 7


def test_the_driver_lists_gpus_and_says_which_are_exclusive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_driver(tmp_path, monkeypatch)
    assert ask_driver() == [UUID]
    assert refusing(["0", UUID]) == []
    monkeypatch.setenv("FAKE_EXCLUSIVE", "1")
    assert refusing(["0", "7"]) == ["0"]


def test_without_a_driver_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNYARD_NVML", "/nowhere/libnvidia-ml.so.1")
    assert ask_driver() == []


@pytest.mark.live
def test_rows_are_counted_as_they_are_written(tmp_path: Path) -> None:
    """The real client writes; its file is read in pieces, as it grows."""
    logging = tmp_path / "train.py"
    logging.write_text(
        "import wandb\n"
        "run = wandb.init(mode='offline', id='abc', dir='.')\n"
        "for step in range(300):\n"
        "    run.log({'loss': step / 7, 'text': 'x' * (step * 10)}, step=10 * step)\n"
        "run.finish()\n"
    )
    rows = RowCount(str(tmp_path), "abc")
    rows.look()
    assert rows.count == 0
    assert rows.rate() is None
    subprocess.run(
        [sys.executable, logging], cwd=tmp_path, check=True, capture_output=True,
        env={**os.environ, "WANDB_SILENT": "true"},
    )  # fmt: skip
    (whole,) = tmp_path.glob("wandb/offline-run-*/run-abc.wandb")
    logged = list(read_rows(str(whole)))
    assert len(logged) == 300
    piece = tmp_path / "piece.wandb"
    file, count, data = RecordFile(str(piece)), 0, whole.read_bytes()
    for end in range(0, len(data) + 5000, 5000):
        piece.write_bytes(data[:end])
        count += sum(len(histories(record)) for record in file.fresh())
    assert count == 300
    rows.look()
    assert (rows.count, rows.steps) == (300, 2990)
    times = [float(str(row["_timestamp"])) for row in logged]
    assert rows.rate() == pytest.approx(2990 / (times[-1] - times[0]))
