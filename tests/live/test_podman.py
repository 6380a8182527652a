"""Trials in a real podman: its containers are started by a process apart, which outlives ours."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard.home import Home
from tests.conftest import RunRunyard
from tests.live.podman import IMAGE, Podman, open_podman
from tests.live.sweeping import api_of, kill, write_sweep
from tests.live.test_charliecloud import COUNTS, start_agent, write_job
from tests.node.terminals import until
from tests.slurm.trainer import TRAINS, history, uncut

pytestmark = pytest.mark.live

# Says where it is, and stays for good: a signal does not end it.
STAYS = """\
import os, pathlib, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
names = ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID", "OF_THE_HOST", "FROM_IMAGE", "HOME")
print("sees", *(os.environ.get(name) for name in names), open("/in-the-image").read(), flush=True)
(pathlib.Path(os.environ["RUNYARD_CHECKPOINT_DIR"]) / "up").touch()
while True:
    time.sleep(1)
"""


@pytest.fixture(scope="module")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    with open_podman(tmp_path_factory.mktemp("podman")) as opened:
        yield opened


@pytest.fixture
def agents(
    podman: Podman, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[subprocess.Popen[str]]]:
    """Agents that a test started; nothing of them outlives it."""
    for name, value in podman.environ.items():
        monkeypatch.setenv(name, value)
    started: list[subprocess.Popen[str]] = []
    yield started
    for agent in started:
        agent.kill()
        agent.communicate()
    # Its processes end with the agent's group, in their own time.
    until(lambda: podman.containers() == [], lambda: podman.run("ps", "--all").stdout, 180)


def make_sweep_of(runyard: RunRunyard, file: Path) -> int:
    made = runyard("sweep", "--no-run", "--json", str(file), cwd=file.parent)
    assert made.returncode == 0, made.stderr
    key: int = json.loads(made.stdout)["key"]
    return key


def test_a_sweep_goes_on_in_new_containers(
    runyard: RunRunyard, state_folder: Home, agents: list[subprocess.Popen[str]], tmp_path: Path
) -> None:
    folder = tmp_path / "my project"
    file = write_sweep(
        folder, TRAINS, parameters={"lr": {"values": [1, 2]}},
        command=[sys.executable, "${program}", "${args}", "--steps=20", "--hold=8"],
    )  # fmt: skip
    key = make_sweep_of(runyard, file)
    job = write_job(folder, IMAGE, key, kind="podman", slots=2)
    agents.append(start_agent(state_folder, job, tmp_path / "first"))

    def logs() -> str:
        trials = api_of(state_folder).sweeps.trials(key)
        return "".join(runyard("logs", trial["id"]).stdout for trial in trials)

    until(lambda: logs().count("holds at 8") == 2, logs, 180)
    agents[0].send_signal(signal.SIGTERM)
    agents[0].communicate(timeout=180)
    agents.append(start_agent(state_folder, job, tmp_path / "second"))
    said, _ = agents[1].communicate(timeout=180)
    api = api_of(state_folder)
    for trial in api.sweeps.trials(key):
        assert (trial["state"], trial["attempts"]) == ("finished", 2), said
        assert history(api, trial["id"]) == uncut(20, int(trial["values"]["lr"]))
    # Told to save, they did so at once, and not from step 5 on.
    assert sorted(re.findall(r"goes on from (\d+)", logs())) == ["0", "0", "9", "9"]


def test_what_a_program_sees_and_that_no_container_outlives_its_agent(
    runyard: RunRunyard,
    state_folder: Home,
    podman: Podman,
    agents: list[subprocess.Popen[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "project"
    file = write_sweep(
        folder, STAYS, parameters={"lr": {"values": [1, 2]}},
        command=[sys.executable, "${program}"],
    )  # fmt: skip
    key = make_sweep_of(runyard, file)
    job = write_job(folder, IMAGE, key, kind="podman", slots=2, gpus="2,5", per_gpu=1)
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    agents.append(start_agent(state_folder, job, tmp_path / "local"))
    until(lambda: len(list(folder.rglob("checkpoints/up"))) == 2, "both programs", 180)
    assert len(podman.containers()) == 2
    kill(agents[0].pid)
    # podman's own processes die with the agent's group; its container does not belong to that.
    until(lambda: podman.containers() == [], lambda: podman.run("ps", "--all").stdout, 180)
    trials = api_of(state_folder).sweeps.trials(key)

    def sights() -> str:
        return "".join(runyard("logs", trial["id"]).stdout for trial in trials)

    # The keeper brings what they printed, after they have ended.
    until(lambda: sights().count(" 77 None None ") == 2, sights, 60)
    found = sorted(re.findall(r"sees (\d) 77 None None (\S+) yes", sights()))
    assert [gpu for gpu, _ in found] == ["2", "5"], sights()
    assert all(home.startswith(f"{tmp_path}/local/runyard-box-") for _, home in found)


def test_the_exit_code_is_the_programs_own(
    runyard: RunRunyard, state_folder: Home, agents: list[subprocess.Popen[str]], tmp_path: Path
) -> None:
    """A shell script fails with code 3."""
    folder = tmp_path / "project"
    file = write_sweep(
        folder, COUNTS, command=["sh", "${program}", "${args}"],
        parameters={"steps": {"values": [8]}},
    )  # fmt: skip
    key = make_sweep_of(runyard, file)
    job = write_job(folder, IMAGE, key, kind="podman")
    agents.append(start_agent(state_folder, job, tmp_path / "local"))
    said, _ = agents[0].communicate(timeout=180)
    (trial,) = api_of(state_folder).sweeps.trials(key)
    assert "in the image: yes, words: --steps=8" in runyard("logs", trial["id"]).stdout, said
    assert api_of(state_folder).run(trial["id"])["exit_code"] == 3
