"""A sweep with a budget, with real agents and programs; GPUs are names in the environment."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runyard.home import Home
from tests.conftest import run_runyard
from tests.live.sweeping import WITHOUT_WANDB, api_of, with_python, write_sweep

pytestmark = pytest.mark.live


def test_programs_that_share_a_gpu_use_their_part_of_a_budget(
    module_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**with_python(), "CUDA_VISIBLE_DEVICES": "GPU-a"}.items():
        monkeypatch.setenv(name, value)
    parameters = {"n": {"values": list(range(40))}, "seconds": {"value": 2}}
    write_sweep(tmp_path, WITHOUT_WANDB, parameters=parameters)
    # Six seconds: three trials of two seconds that have the GPU alone, or six in pairs.
    words = ("--per-gpu", "2", "--mps", "off", "--budget", "0.001667 gpu-hours", "--json")
    ended = run_runyard("sweep", "sweep.yaml", *words, cwd=tmp_path, timeout=120)
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout)
    (sweep,) = api_of(module_home).sweeps.sweeps()
    cause = sweep["cause"] or ""
    assert cause.startswith("its budget of 0.001667 GPU-hours is used: 0.00")
    assert told["cause"] == cause
    attempts = api_of(module_home).sweeps.work(sweep["key"])["attempts"]
    shares = [(attempt["usage"] or {})["gpu_share"] for attempt in attempts]
    assert all(0.4 < share <= 1 for share in shares)
    assert sum(share < 0.8 for share in shares) >= 2, "they ran side by side"
    assert sweep["counts"]["finished"] < 12

    status = run_runyard("status", sweep["id"], cwd=tmp_path)
    assert cause in status.stdout
    report = run_runyard("report", sweep["id"], cwd=tmp_path)
    assert cause in " ".join(report.stdout.split())
    before = sweep["counts"]["finished"]
    wrong = run_runyard("sweep", sweep["id"], "--budget", "3 cpu-hours", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "--budget 3 cpu-hours" in wrong.stderr
    assert "write 200 gpu-hours" in wrong.stderr
    more = ("--budget", "0.004 gpu-hours", "--per-gpu", "2", "--mps", "off")
    again = run_runyard("sweep", sweep["id"], *more, cwd=tmp_path, timeout=120)
    assert again.returncode == 0, again.stderr
    (sweep,) = api_of(module_home).sweeps.sweeps()
    assert before < sweep["counts"]["finished"] < 40
