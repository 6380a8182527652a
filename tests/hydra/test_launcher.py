"""`hydra/launcher=runyard` on this machine: Hydra's contract, failures, killed jobs, options."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from runyard.home import Home
from runyard.scripting.options import OPTIONS
from tests.hydra.hydra_environment import ROOT, hydra_python, hydra_variables, run_hydra
from tests.live.sweeping import api_of

pytestmark = pytest.mark.live

PROGRAM = """\
import os, signal
from pathlib import Path
import hydra
from hydra.core.hydra_config import HydraConfig

@hydra.main(version_base="1.3", config_path=None)
def train(config):
    job = HydraConfig.get()
    folder = Path(job.runtime.output_dir)
    with open(folder / "attempts", "a") as file:
        file.write(f"{job.job.num} {job.job.id} {config.lr} {folder}\\n")
    if config.lr == 0.1 and os.environ["RUNYARD_ATTEMPT"] == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    print("lr is", config.lr)
    return 1 / config.lr

if __name__ == "__main__":
    train()
"""


@pytest.fixture(autouse=True)
def _one_server(module_home: Home) -> None:
    """All tests of this module share a server, and have folders of their own."""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "train.py"
    file.write_text(PROGRAM)
    return file


def started(output: str) -> str:
    """The sweep that the launcher has started, by what it says."""
    [name] = re.findall(r"runyard status (\S+)", output)
    return str(name)


def test_it_passes_hydras_own_suites(tmp_path: Path) -> None:
    contract = ROOT / "plugins" / "hydra" / "tests" / "test_contract.py"
    words = ["-q", "-c", "/dev/null", "--rootdir", str(tmp_path), "-p", "no:cacheprovider"]
    done = subprocess.run(
        [str(hydra_python()), "-m", "pytest", *words, str(contract)],
        cwd=tmp_path,
        env=hydra_variables(),
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "23 passed" in done.stdout


def test_a_job_that_is_killed_goes_on_in_its_folder(
    module_home: Home, program: Path, tmp_path: Path
) -> None:
    done = run_hydra(program, "+lr=0.1,0.2", "hydra.launcher.name=killed", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    api = api_of(module_home)
    sweep = api.sweeps.find(started(done.stdout))
    assert sweep["name"] == "killed"
    runs = {run["config"]["lr"]: run for run in api.runs(sweep=sweep["key"])}
    assert {run["state"] for run in runs.values()} == {"finished"}
    [folder] = (tmp_path / "multirun").glob("*/*")
    assert (folder / "multirun.yaml").exists()
    line = f"0 {runs[0.1]['id']} 0.1 {folder / '0'}\n"
    assert (folder / "0" / "attempts").read_text() == line * 2
    assert (folder / "1" / "attempts").read_text().startswith(f"1 {runs[0.2]['id']} 0.2")
    assert (folder / "0" / ".hydra" / "overrides.yaml").read_text() == "- +lr=0.1\n"
    assert {run["name"] for run in runs.values()} == {"0-lr=0.1", "1-lr=0.2"}


def test_a_job_that_fails_ends_the_multirun_after_the_others(
    module_home: Home, program: Path, tmp_path: Path
) -> None:
    done = run_hydra(program, "+lr=0,0.5", folder=tmp_path)
    assert done.returncode == 1
    assert "Error executing job with overrides: ['+lr=0']" in done.stderr
    assert 'train.py", line 15, in train' in done.stderr, "the traceback of the job"
    assert "ZeroDivisionError: " in done.stderr
    api = api_of(module_home)
    runs = api.runs(sweep=api.sweeps.find(started(done.stdout))["key"])
    assert {run["config"]["lr"]: run["state"] for run in runs} == {0: "failed", 0.5: "finished"}


def test_its_keys_are_the_options_of_the_python_api() -> None:
    code = (
        "import dataclasses, json; from hydra_plugins.runyard_launcher import config\n"
        "print(json.dumps([f.name for f in dataclasses.fields(config.RunyardLauncherConf)]))"
    )
    done = subprocess.run(
        [str(hydra_python()), "-c", code], env=hydra_variables(), capture_output=True, check=True
    )
    assert set(json.loads(done.stdout)) - {"_target_"} == OPTIONS | {"at_once"}


@pytest.mark.parametrize(
    ("word", "answer"),
    [
        ("hydra.launcher.gpuss=1", "Key 'gpuss' not in 'RunyardLauncherConf'"),
        ("hydra.launcher.time=soon", "time='soon'"),
        ("+hydra.launcher.settings.environment.module=[cuda]", "did you mean environment.modules?"),
    ],
)
def test_a_wrong_option_is_refused_by_name(
    program: Path, tmp_path: Path, word: str, answer: str
) -> None:
    done = run_hydra(program, "+lr=1", word, folder=tmp_path)
    assert done.returncode == 1
    assert answer in done.stderr
    assert "Launched" not in done.stdout
    assert "Traceback" not in done.stderr


def test_the_launchers_types_hold() -> None:
    """Apart from the rest: only this environment has Hydra."""
    words = ["--strict", "--explicit-package-bases", "--namespace-packages"]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *words, "--python-executable", str(hydra_python()),
         "-p", "hydra_plugins.runyard_launcher"],
        cwd=ROOT / "plugins" / "hydra", env={**os.environ, "MYPYPATH": f".:{ROOT / 'src'}"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout + checked.stderr
