"""`runyard gauge`: a real program, looked at from outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from runyard.home import Home
from tests.conftest import RunRunyard
from tests.live.sweeping import with_python
from tests.node.recorded_driver import SCENES, UUID, answers, build_driver

pytestmark = pytest.mark.live

# 60 MB and a child with 40, twenty steps, and the total told; the first is slow.
PROGRAM = """\
import json, os, subprocess, sys, time
from runyard import train
if sys.argv[1:2] == ["child"]:
    room = bytearray(os.urandom(1000)) * 40_000
    print("ready", flush=True)
    sys.stdin.read()
    sys.exit()
child = subprocess.Popen([sys.executable, __file__, "child"], stdin=-1, stdout=-1)
child.stdout.readline()
room = bytearray(os.urandom(1000)) * 60_000
def play(answers):  # The driver says this from now on, until it was asked twice.
    gpu = os.environ["RECORDED_GPU"]
    with open(gpu + ".new", "w") as file:
        file.write(answers.replace("OURS", str(child.pid)))
    os.rename(gpu + ".new", gpu)
    def asked():
        return os.path.getsize(gpu + ".asked") if os.path.exists(gpu + ".asked") else 0
    end = asked() + 2
    while asked() < end:
        time.sleep(0.02)
for answers in json.loads(os.environ.get("GPU_ANSWERS", "[]")):
    play(answers)
for step in train.steps(0, 20, show=True):
    time.sleep(0.5 if step == 0 else 0.1)
child.stdin.close()
child.wait()
"""


def write_program(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text(PROGRAM)
    return folder


def test_a_program_is_measured_kept_and_written(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    project = write_program(tmp_path / "birds")
    (project / "runyard.yaml").write_text("resources:\n  gpus: 0  # none\n")
    done = runyard(
        "gauge", "--json", "--write", "--", "python", "train.py", env=with_python(), cwd=project
    )
    assert done.returncode == 0, done.stderr
    assert "no GPU is here" in done.stderr
    told = json.loads(done.stdout)
    figures = told["figures"]
    assert told["kind"] == "train.py"
    assert figures["exit_code"] == 0
    assert 100e6 < figures["memory_peak"] < 300e6
    assert (figures["step"], figures["total"]) == (20, 20)
    assert figures["whole_seconds"] == pytest.approx(figures["seconds"], abs=0.1)
    assert figures["seconds"] > 2.4
    assert figures["steps_per_second"] > 1
    assert told["ask"] == {"programs": 1, "memory": 256, "cpus": 1, "seconds": 300.0}
    # Comments stay.
    text = (project / "runyard.yaml").read_text()
    assert "gpus: 0  # none" in text
    assert yaml.safe_load(text)["resources"] == {
        "gpus": 0, "memory": "256M", "cpus": 1, "time": "5m",
    }  # fmt: skip
    [kept] = json.loads(runyard("gauge", "--list", "--json", cwd=project).stdout)
    assert (kept["kind"], kept["figures"]["total"]) == ("train.py", 20)
    # The next submission of this kind begins with it.
    dry = runyard("repeat", "--seeds", "6", "--dry-run", "--", "python", "train.py", cwd=project)
    assert "estimate: 6 trials of about" in dry.stderr
    assert "runyard gauge measured it" in dry.stderr


def test_gpu_memory_of_the_program_and_how_many_fit(
    runyard: RunRunyard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver says what an H200's said of a program that took 2, then 6, then 1 GiB, and at
    last of one beside a stranger: the peak of the program is the one in the middle."""
    build_driver(tmp_path, monkeypatch)
    names = ("one", "one with 6 GiB", "one with 1 GiB", "one beside a stranger")
    told_by_driver = [answers(one, {SCENES[one]["programs"][0]["pid"]: "OURS"}) for one in names]
    project = write_program(tmp_path / "birds")
    (project / "runyard.yaml").write_text("cluster: narval\nresources: {gpus: 1, gpu_type: a100}\n")
    done = runyard(
        "gauge", "--json", "--no-keep", "--", "python", "train.py",
        env={**with_python(), "GPU_ANSWERS": json.dumps(told_by_driver)}, cwd=project,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["hardware"] == "NVIDIA H200"
    peak = SCENES["one with 6 GiB"]["seen"]["attempts"]["0"]["vram_peak"]
    assert 6 << 30 < peak < 7 << 30
    assert told["figures"]["vram_peaks"] == {UUID: peak}
    assert told["figures"]["vram_is_of_card"] is False
    # 90 % of its memory over 7 GiB.
    fits = {room["gpu"]: room["count"] for room in told["rooms"]}
    assert fits["a100"] == int(40e9 * 0.9) // (7 << 30) == 4
    assert any("--pack finds out how many of them pay" in note for note in told["notes"])


def test_more_at_a_time_to_where_it_stops_paying_and_a_whole_file(
    runyard: RunRunyard, tmp_path: Path
) -> None:
    project = write_program(tmp_path / "birds")
    packed = runyard(
        "gauge", "--json", "--no-keep", "--pack", "2", "--", "python", "train.py",
        env=with_python(), cwd=project,
    )  # fmt: skip
    assert packed.returncode == 0, packed.stderr
    levels = [level["count"] for level in json.loads(packed.stdout)["levels"]]
    assert levels == ([1, 2] if len(os.sched_getaffinity(0)) > 1 else [1])

    (project / "tasks.txt").write_text("python train.py\npython train.py && true\n# no\nfalse\n")
    whole = runyard(
        "gauge", "--no-keep", "--tasks", "tasks.txt", "-j", "2", env=with_python(), cwd=project
    )
    assert whole.returncode == 0, whole.stderr
    assert "2 of 3 command lines, all at the same time" in whole.stderr
    assert "next, run it:  runyard farm tasks.txt --on slurm --time 5m" in whole.stderr
    assert "host memory fit" in whole.stdout
    assert max(map(len, whole.stdout.splitlines())) <= 80
    failed = runyard("gauge", "--no-keep", "--tasks", "tasks.txt", env=with_python(), cwd=project)
    assert failed.returncode == 1
    assert "the program failed (exit code 1)" in failed.stderr


def test_a_gauge_that_is_killed_leaves_no_program_behind(
    state_folder: Home, tmp_path: Path
) -> None:
    program = "import os, time; open('pid', 'w').write(f'{os.getpid()}\\n'); time.sleep(600)"
    (tmp_path / "p.py").write_text(program)
    gauge = subprocess.Popen(
        [sys.executable, "-m", "runyard", "gauge", "--no-keep", "--", sys.executable, "p.py"],
        cwd=tmp_path, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    pid = _wait_for(lambda: int((tmp_path / "pid").read_text()))
    gauge.send_signal(signal.SIGKILL)
    gauge.wait(180)
    _wait_for(lambda: not Path(f"/proc/{pid}").exists() or 1 / 0)


# It says when it has taken a few steps, and goes on for an hour.
ENDLESS = """\
import os, time
from pathlib import Path
from runyard import train
for step in train.steps(0, 36_000):
    time.sleep(0.1)
    if step == 15:
        Path("aside").write_text(f"{os.getpid()}\\n")
        os.rename("aside", "pid")
"""


def test_ctrl_c_ends_the_program_and_tells_what_was_measured(
    state_folder: Home, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(ENDLESS)
    gauge = subprocess.Popen(
        [sys.executable, "-m", "runyard", "gauge", "--write", "--", sys.executable, "train.py"],
        cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    pid = _wait_for(lambda: int((tmp_path / "pid").read_text()))
    gauge.send_signal(signal.SIGINT)
    told, said = gauge.communicate(timeout=120)
    assert gauge.returncode == 130, said
    assert "Ctrl-C: the program was ended; this was measured so far, and is not kept" in said
    assert "a second" in told
    assert "of 36000)" in told
    assert "Traceback" not in said
    assert not Path(f"/proc/{pid}").exists()
    assert not (tmp_path / "runyard.yaml").exists()


def _wait_for(answer: Any, seconds: float = 180) -> Any:
    end = time.monotonic() + seconds
    while True:
        try:
            return answer()
        except (OSError, ValueError, ZeroDivisionError):
            assert time.monotonic() < end
            time.sleep(0.05)


def test_on_slurm_it_asks_for_a_short_job(runyard: RunRunyard, tmp_path: Path) -> None:
    (tmp_path / "runyard.yaml").write_text("resources: {time: 24h, memory: 4G}\n")
    shown = runyard(
        "gauge", "--on", "slurm", "--dry-run", "--for", "2m", "--gpus", "1", "--", "python", "t.py",
        cwd=tmp_path,
    )  # fmt: skip
    assert shown.returncode == 0, shown.stderr
    allocation, command = shown.stdout.splitlines()
    assert allocation.startswith("salloc --no-shell --job-name=gauge-")
    assert "--time=0-00:07:00" in allocation
    assert "--for 120.0 -- python t.py" in command
