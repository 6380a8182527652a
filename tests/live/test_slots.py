"""Programs side by side on GPUs: tied, packed, measured. Real programs, agents and processes; the
The GPU's answers are recorded, see `tests/node/recorded_driver.py`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from runyard.home import Home
from tests.conftest import run_runyard
from tests.live.sweeping import agents_of, api_of, processes_of, with_python, write_sweep
from tests.live.test_farm import LONG, begun, newest
from tests.node.recorded_driver import UUID, answers, build_driver, install_mps
from tests.node.terminals import until

pytestmark = pytest.mark.live

TELL = "import json, os; print(json.dumps([dict(os.environ), sorted(os.sched_getaffinity(0))]))\n"


@pytest.fixture(autouse=True)
def _one_server(module_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """All tests of this module share a server."""
    for name, value in with_python().items():
        monkeypatch.setenv(name, value)
    for name in ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "TMPDIR"):
        monkeypatch.delenv(name, raising=False)


def tasks(folder: Path, program: str, *words: str) -> None:
    (folder / "train.py").write_text(program)
    (folder / "tasks.txt").write_text("".join(f"python train.py {one}\n" for one in words))


def printed(folder: Path, sweep: dict[str, Any]) -> list[str]:
    return [file.read_text() for file in sorted((folder / "sweeps" / sweep["id"]).glob("*/*.log"))]


def test_each_program_is_tied_to_one_of_several_gpus(
    module_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,GPU-b")
    tasks(tmp_path, TELL, "--x 1", "--x 2", "--x 3", "--x 4")
    ended = run_runyard(
        "farm", "tasks.txt", "--per-gpu", "2", "--mps", "off",
        cwd=tmp_path, timeout=LONG,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "2 at a time on each GPU" in ended.stderr
    assert "MPS is off: programs on one GPU take turns" in ended.stderr
    told = [json.loads(text) for text in printed(tmp_path, newest(module_home))]
    gpus = [environ["CUDA_VISIBLE_DEVICES"] for environ, _ in told]
    assert sorted(gpus) == ["2", "2", "GPU-b", "GPU-b"]
    assert {environ["RUNYARD_SLOT"] for environ, _ in told} == {"0", "1", "2", "3"}
    assert {(one["RANK"], one["WORLD_SIZE"]) for one, _ in told} == {("0", "1")}
    assert len({environ["MASTER_PORT"] for environ, _ in told}) == 4
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) > 1:
        of_first = [set(own) for environ, own in told if environ["CUDA_VISIBLE_DEVICES"] == "2"]
        of_second = [set(own) for environ, own in told if environ["CUDA_VISIBLE_DEVICES"] != "2"]
        assert not set.union(*of_first) & set.union(*of_second)


def test_a_sweep_file_says_how_many_share_a_gpu(
    module_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    write_sweep(
        tmp_path, TELL, parameters={"x": {"values": [1, 2]}}, runyard={"slots_per_gpu": 2},
        command=["${interpreter}", "${program}", "--slot", "${RUNYARD_SLOT}"],
    )  # fmt: skip
    ended = run_runyard("sweep", "sweep.yaml", "--gpus", "1", cwd=tmp_path, timeout=LONG)
    assert ended.returncode == 0, ended.stderr
    trials = api_of(module_home).sweeps.trials(newest(module_home)["key"])
    for trial in trials:
        run = api_of(module_home).run(trial["id"])
        (environ, _) = json.loads(api_of(module_home).console(run)["text"])
        assert environ["CUDA_VISIBLE_DEVICES"] == "5"
        assert environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] == "0.45"


LOGS = """\
import os, time, wandb
run = wandb.init()
room = bytearray(os.urandom(1000)) * 80_000
for step in range(40):
    run.log({"loss": 1 / (1 + step)})
    time.sleep(0.1)
"""


def test_what_an_attempt_used_is_kept_and_shown(
    module_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_SILENT", "true")
    tasks(tmp_path, LOGS, "")
    ended = run_runyard("farm", "tasks.txt", cwd=tmp_path, timeout=LONG)
    assert ended.returncode == 0, ended.stderr
    (trial,) = api_of(module_home).sweeps.trials(newest(module_home)["key"])
    used = api_of(module_home).run(trial["id"])["attempts"][0]["usage"]
    assert used is not None
    assert used["memory_peak"] > 80e6
    assert used["cpu_seconds"] > 0.1
    assert 1 < used["steps_per_second"] < 11
    shown = run_runyard("show", trial["id"]).stdout
    assert " memory, " in shown
    assert " CPU" in shown
    assert "steps/s" in shown


# Works until another has run out of memory, because it found this one at work.
GREEDY = """\
import sys, time
from pathlib import Path
at_work, ran_out = Path("at-work"), Path("ran-out")
if at_work.exists():
    ran_out.touch()
    sys.exit("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB")
at_work.touch()
while not ran_out.exists():
    print("a step", flush=True)
    time.sleep(0.05)
at_work.unlink()
"""


def test_who_runs_out_of_memory_beside_another_runs_again_with_more_room(
    module_home: Home, tmp_path: Path
) -> None:
    """It begins with one, finds room for a second, and hears that there was none."""
    tasks(tmp_path, GREEDY, "--x 1", "--x 2")
    ended = run_runyard("farm", "tasks.txt", "--per-gpu", "auto", cwd=tmp_path, timeout=LONG)
    assert ended.returncode == 0, ended.stderr
    assert "no GPU is here: programs share the CPUs" in ended.stderr
    assert "CPUs: 1 at a time (one ran out of memory)" in ended.stderr
    trials = api_of(module_home).sweeps.trials(newest(module_home)["key"])
    assert [(one["state"], one["attempts"]) for one in trials] == [("finished", 1), ("finished", 2)]
    attempts = api_of(module_home).run(trials[1]["id"])["attempts"]
    assert [one["cause"] for one in attempts] == ["crowded", "finished"]


def test_how_many_run_side_by_side_and_why_is_told_while_they_run(
    module_home: Home, tmp_path: Path
) -> None:
    tasks(tmp_path, GREEDY.replace("not ran_out", "not Path('seen')"), "--x 1", "--x 2")
    line = "CPUs: 1 at a time ("
    with begun("farm", "tasks.txt", "--per-gpu", "auto", "-q", cwd=tmp_path) as farm:

        def is_told() -> bool:
            newest_sweeps = api_of(module_home).sweeps.sweeps(limit=1)
            agents = [agent for sweep in newest_sweeps for agent in sweep["agents"]]
            return any(line in (agent["packing"] or "") for agent in agents)

        until(is_told, "the agent has told how many run side by side")
        assert line in run_runyard("status").stdout
        (tmp_path / "seen").touch()
        assert farm.wait(LONG) == 0


def test_a_killed_agent_leaves_no_mps_behind(
    module_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_mps(tmp_path, monkeypatch)
    tasks(tmp_path, "import time; time.sleep(1000)", "--x 1", "--x 2")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    words = ("farm", "tasks.txt", "--per-gpu", "2", "--mps", "on", "-q")
    with begun(*words, cwd=tmp_path):
        until(lambda: len(processes_of(module_home, r"^python train\.py")) == 2, "both began")
        until(lambda: bool(newest(module_home)["agents"][0]["usage"]), "what they use is told")
        assert " memory, " in run_runyard("status").stdout
        assert " memory, " in run_runyard("agents").stdout
        daemons = processes_of(module_home, "nvidia-cuda-mps-control")
        assert daemons
        os.kill(agents_of(module_home)[0], 9)
        left = r"mps|train\.py|sleep 1000|sampler"
        until(lambda: not processes_of(module_home, left), "nothing is left")


def test_where_programs_cannot_share_a_gpu_one_runs_at_a_time(
    module_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Not recorded: a card in exclusive mode.
    build_driver(tmp_path, monkeypatch).write_text(answers("idle") + "mode 3\n")
    alone = "from pathlib import Path; lock = Path('lock'); lock.mkdir(); lock.rmdir()"
    tasks(tmp_path, alone, *(f"--x {number}" for number in range(6)))
    ended = run_runyard("farm", "tasks.txt", "--per-gpu", "3", cwd=tmp_path, timeout=LONG)
    assert ended.returncode == 0, ended.stderr
    assert f"GPU {UUID} lets one program in at a time (exclusive mode)" in ended.stderr


def test_mps_that_is_demanded_and_cannot_be_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    tasks(tmp_path, "", "--x 1")
    ended = run_runyard(
        "farm", "tasks.txt", "--per-gpu", "2", "--mps", "on",
        cwd=tmp_path, timeout=LONG,
    )  # fmt: skip
    assert ended.returncode != 0
    assert "MPS was asked for, and cannot be had: nvidia-cuda-mps-control" in ended.stderr
