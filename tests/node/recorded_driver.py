"""NVIDIA's driver for machines without a GPU: it gives the answers of a real one, played back.

`nvml_h200.json` was recorded by `scripts/record_nvml.py` on an NVIDIA H200 with driver 580.159.04
and 16 CPUs, on a virtual machine that had the card to itself, with MPS and without. Only process
numbers are others in a test: those of its own processes. What was not recorded (a card in exclusive
mode, hundreds of processes) tests write as lines of their own, and say so. MPS is a double.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.packages import require

RECORDING: dict[str, Any] = json.loads(Path(__file__).with_name("nvml_h200.json").read_text())
SCENES: dict[str, Any] = {
    **RECORDING["scenes"],
    "torch": RECORDING["torch"],
    **{f"{name}, MPS": scene for name, scene in RECORDING["mps"]["scenes"].items()},
}
UUID: str = SCENES["idle"]["card"]["name"]
TOTAL: int = SCENES["idle"]["card"]["total"]
# Where the driver has no number of a GPU instance.
_NONE = (1 << 32) - 1


def answers(name: str, numbers: Mapping[int, int | str] | None = None) -> str:
    """What the driver said in a scene; `numbers`: other process numbers for those of that day."""
    scene, numbers = SCENES[name], numbers or {}
    lines: dict[str, str] = {"uuid": UUID, "model": scene["card"]["model"]}
    processes: list[str] = []
    for call in scene["calls"]:
        assert call["code"] == 0, "a call that failed is not played back"
        function, told = call["function"], call["arguments"]
        if function == "nvmlDeviceGetMemoryInfo":
            lines["memory"] = " ".join(str(told[1][key]) for key in ("total", "free", "used"))
        elif function == "nvmlDeviceGetUtilizationRates":
            lines["use"] = f"{told[1]['gpu']} {told[1]['memory']}"
        elif function == "nvmlDeviceGetComputeMode":
            lines["mode"] = str(told[1])
        elif function.endswith("RunningProcesses_v3"):
            kind = "mps" if "MPS" in function else "compute"
            processes += [_process(kind, numbers, one) for one in told[2]]
    return "".join([*(f"{key} {value}\n" for key, value in lines.items()), *processes])


def _process(kind: str, numbers: Mapping[int, int | str], one: Mapping[str, int]) -> str:
    number = numbers.get(one["pid"], one["pid"])
    return f"{kind} {number} {one['memory']} {one['instance']} {one['compute_instance']}\n"


def invented(pid: int, memory: int) -> str:
    """A process that nobody recorded."""
    return _process("compute", {}, {"pid": pid, "memory": memory, "instance": _NONE,
                                    "compute_instance": _NONE})  # fmt: skip


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
    """The file with the driver's answers; those of an idle card at first."""
    gpu = folder / "gpu"
    gpu.write_text(answers("idle"))
    monkeypatch.setenv("RUNYARD_NVML", str(compile_driver("recorded_nvml.c", folder)))
    monkeypatch.setenv("RECORDED_GPU", str(gpu))
    return gpu


def compile_driver(source: str, folder: Path) -> Path:
    """The library that RUNYARD_NVML names, from a file beside this one."""
    require("gcc", "libc6-dev")
    library = folder / "libnvidia-ml.so.1"
    file = Path(__file__).with_name(source)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, file], check=True)
    return library


def write_mps(folder: Path) -> None:
    program = folder / "nvidia-cuda-mps-control"
    program.write_text(_MPS)
    program.chmod(0o755)


def install_mps(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the daemon on the PATH, and its folders into one of ours."""
    programs = folder / "bin"
    programs.mkdir()
    write_mps(programs)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("SLURM_TMPDIR", raising=False)
