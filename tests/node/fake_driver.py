"""A driver of NVIDIA's and its MPS, for machines without a GPU. Doubles: the real ones were used
on an H200 (docs/packing.md), and cannot be had where tests run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.packages import require

UUID = "GPU-fake"
# Stays until it is asked to go, with a server beside it, as the real one does.
_MPS = """\
#!/bin/sh
pipe="$CUDA_MPS_PIPE_DIRECTORY"
if [ "$1" != -f ]; then read word; echo "$word" > "$pipe/asked"; exit 0; fi
echo "$CUDA_VISIBLE_DEVICES" > "$CUDA_MPS_LOG_DIRECTORY/gpus"
[ -z "$FAKE_MPS_FAILS" ] || { echo "An instance of this daemon is already running"; exit 1; }
sleep 1000 &
touch "$pipe/control"
while [ ! -e "$pipe/asked" ]; do sleep 0.05; done
kill $!
"""


def build_driver(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which tests say what is on the GPU."""
    require("gcc", "libc6-dev")
    library, gpu = folder / "libnvidia-ml.so.1", folder / "gpu"
    source = Path(__file__).with_name("fake_nvml.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    gpu.touch()
    monkeypatch.setenv("RUNYARD_NVML", str(library))
    monkeypatch.setenv("FAKE_GPU", str(gpu))
    return gpu


def install_mps(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the daemon on the PATH, and its folders into one of ours."""
    program = folder / "bin" / "nvidia-cuda-mps-control"
    program.parent.mkdir()
    program.write_text(_MPS)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("SLURM_TMPDIR", raising=False)
