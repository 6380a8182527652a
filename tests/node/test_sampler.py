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

from runyard.node.attempt.wandb_file import RecordFile, histories, read_rows
from runyard.node.devices.gpus import ask_cards, ask_driver, refusing
from runyard.node.devices.row_rate import RowCount
from runyard.node.devices.sampler_client import SAMPLER
from runyard.node.system.processes import MARK
from tests.node.recorded_driver import (
    SCENES,
    TOTAL,
    UUID,
    answers,
    build_driver,
    compile_driver,
    invented,
)

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


def child_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


# Scenes whose first program is ours: alone, below a wrapper, and beside somebody else's.
OURS = ("one", "one with 6 GiB", "below a wrapper", "one beside a stranger", "torch",
        "below a wrapper, MPS", "one beside a stranger, MPS")  # fmt: skip


def test_gpu_memory_is_that_of_the_program_not_of_the_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answers of a real driver, with our processes in place of those that it spoke of."""
    gpu = build_driver(tmp_path, monkeypatch)
    with program(tmp_path) as started:
        for name in OURS:
            scene = SCENES[name]
            (recorded,) = scene["programs"]
            is_child = recorded["pid"] != recorded["started"]
            number = child_of(started.pid) if is_child else started.pid
            gpu.write_text(answers(name, {recorded["pid"]: number}))
            told = sample(started.pid, tmp_path, [])
            seen, then = told["attempts"]["a"], scene["seen"]["attempts"]["0"]
            # As on the machine of the recording: in bytes, by GPU.
            for key in ("vram", "vram_peak", "vram_total", "gpu_use", "gpu"):
                assert seen[key] == then[key], (name, key)
            assert told["gpus"] == scene["seen"]["gpus"]
            # What it had asked for and CUDA's own part of it, whatever others have of the card.
            own = seen["vram"][UUID] - recorded.get("torch_reserved", recorded["holds"])
            assert 0 < own < 700_000_000, name
            assert told["gpus"][UUID]["used"] > seen["vram"][UUID]


def test_two_programs_on_a_card_have_what_is_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = build_driver(tmp_path, monkeypatch)
    with program(tmp_path) as first, program(tmp_path) as second:
        for name in ("two", "two, MPS"):
            small, large = SCENES[name]["programs"]
            numbers = {small["pid"]: first.pid, large["pid"]: child_of(second.pid)}
            gpu.write_text(answers(name, numbers))
            found = [sample(one.pid, tmp_path, [UUID]) for one in (first, second)]
            peaks = [told["attempts"]["a"]["vram_peak"] for told in found]
            assert peaks == [
                SCENES[name]["seen"]["attempts"][token]["vram_peak"] for token in ("0", "1")
            ]
            assert 2 << 30 < peaks[0] < 3 << 30
            assert 5 << 30 < peaks[1] < 6 << 30


def test_a_program_that_is_tied_to_no_gpu_is_found_on_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside hundreds of processes, which nobody recorded."""
    gpu = build_driver(tmp_path, monkeypatch)
    with program(tmp_path) as started:
        many = "".join(invented(pid, 5) for pid in range(1, 400))
        gpu.write_text(answers("idle") + many + invented(started.pid, 7))
        seen = sample(started.pid, tmp_path, [])["attempts"]["a"]
    assert seen["vram_peak"] >= 7


def test_the_driver_lists_gpus_and_says_which_are_exclusive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = build_driver(tmp_path, monkeypatch)
    assert ask_driver() == [UUID]
    assert ask_cards() == [
        {"name": UUID, "model": "NVIDIA H200", "total": TOTAL, "used": 644939776}
    ]
    assert refusing(["0", UUID]) == []
    gpu.write_text(answers("idle") + "mode 3\n")  # Not recorded: a card in exclusive mode.
    assert refusing(["0", "7"]) == ["0"]


@pytest.mark.parametrize("count", ["usable", "all"])
def test_gpus_behind_a_fence_are_numbered_as_cuda_numbers_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: str
) -> None:
    """A job has the last two of four GPUs; tests/nodes/test_fences.py has a real fence."""
    for number in (2, 3):
        (tmp_path / f"nvidia{number}").touch()
    monkeypatch.setenv("RUNYARD_NVML", str(compile_driver("fenced_nvml.c", tmp_path)))
    monkeypatch.setenv("FENCED_GPUS", str(tmp_path))
    monkeypatch.setenv("FENCED_COUNT", count)
    assert ask_driver() == ["GPU-2", "GPU-3"]
    assert [card["model"] for card in ask_cards(["0", "1", "GPU-3", "2"])] == [
        "Fenced 2", "Fenced 3", "Fenced 3", "",
    ]  # fmt: skip


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
