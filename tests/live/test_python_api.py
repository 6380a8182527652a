"""`runyard.submit`, `map` and `sweep` from Python, with real processes on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import runyard
from runyard.errors import NotFoundError, UsageError
from runyard.home import Home
from tests.environments import CACHE, Missing, ensure, pip_install, skip_or_fail
from tests.live.sweeping import WITHOUT_WANDB, api_of
from tests.node.terminals import until
from tests.tutorials.tutorial import run_tutorial

pytestmark = pytest.mark.live

LONG = 120.0  # A guard against a hang, never a measure.
MakeConfig = Callable[..., dict[str, object]]
DOCS = Path(__file__).parents[2] / "docs"
FUNCTIONS = """\
import os, signal, time
from pathlib import Path

def power(base, exponent=2):
    print("the power of", base)
    return base ** exponent

def wait_for(file, number):
    Path(f"{file}.{number}").touch()
    while not Path(file).exists():
        time.sleep(0.05)
    return number

def fail(word):
    raise KeyError(word)

def die():
    print("last words", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
SCRIPT = """\
import json, runyard

class Point:
    def __init__(self, x):
        self.x = x

def moved(point, by):
    return Point(point.x + by)

if __name__ == "__main__":
    jobs = [runyard.submit(moved, Point(1), by=2), *runyard.map(lambda x: Point(-x), [1, 2])]
    results = [job.result(timeout=100) for job in jobs]
    assert all(isinstance(result, Point) for result in results)
    print(json.dumps([result.x for result in results]))
"""


@pytest.fixture(autouse=True)
def _one_server(module_home: Home) -> None:
    """All tests of this module share a server, and have folders of their own."""


@pytest.fixture
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A project with a module in a folder that Python finds, as beside a script."""
    monkeypatch.chdir(tmp_path)
    name = f"functions_{tmp_path.name}"
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / f"{name}.py").write_text(FUNCTIONS)
    monkeypatch.syspath_prepend(tmp_path / "lib")
    return __import__(name)


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_a_program_is_started_and_looked_after(
    module_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    job = runyard.submit(python("print('it is', 3)"), project="birds")
    assert job.wait(LONG) == job.state == "finished"
    assert job.done()
    assert job.logs() == "it is 3\n"
    assert (job.exit_code, job.job_ids) == (0, [])
    [run] = job.runs()
    assert (run["state"], run["project"]) == ("finished", "birds")
    assert repr(job) == f"<Job {job.id} finished>"
    assert api_of(module_home).sweeps.find(job.id)["state"] == "finished"

    failed = runyard.submit(python("raise SystemExit(3)"), on="here", name="short", folder=tmp_path)
    assert failed.wait(LONG) == "failed"
    assert failed.exit_code == 3
    assert api_of(module_home).sweeps.find(failed.id)["name"] == "short"


def test_a_job_is_canceled(tmp_path: Path) -> None:
    job = runyard.submit(python("print('here'); import time; time.sleep(600)"), folder=tmp_path)
    with pytest.raises(TimeoutError):
        job.wait(timeout=0.3)
    until(lambda: job.state == "running", "its start", LONG)
    job.cancel()
    assert job.wait(LONG) == "canceled"
    job.cancel()


def test_a_job_of_an_earlier_process_is_found_by_its_id(
    functions: ModuleType, tmp_path: Path
) -> None:
    """Nothing is kept but the id: a program, a call and the calls of a list."""
    program = runyard.submit(python("print('it is', 3)"), folder=tmp_path)
    call = runyard.submit(functions.power, 3)
    calls = runyard.map(functions.power, [4, 5])
    failed = runyard.submit(functions.fail, "a word")
    assert runyard.job(program.id).wait(LONG) == "finished"
    assert runyard.job(program.id).logs() == "it is 3\n"
    again = runyard.job(call.id)
    assert isinstance(again, runyard.FunctionJob)
    assert again.result(LONG) == 9
    assert [runyard.job(job.name).name for job in calls] == [job.name for job in calls]
    second = runyard.job(calls[1].name)
    assert isinstance(second, runyard.FunctionJob)
    assert second.result(LONG) == 25
    third = runyard.job(failed.id)
    assert isinstance(third, runyard.FunctionJob)
    with pytest.raises(KeyError, match="a word"):
        third.result(LONG)
    with pytest.raises(UsageError, match=f"{calls[0].id} is a list of 2 jobs"):
        runyard.job(calls[0].id)
    with pytest.raises(NotFoundError, match=f"{calls[0].id} has no job 3"):
        runyard.job(f"{calls[0].id}:3")
    with pytest.raises(NotFoundError):
        runyard.job("nothing-of-this-name")


def test_a_job_found_again_is_not_waited_for_when_nobody_works_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runyard.scripting.watch.POLL_SECONDS", 1.0)
    job = runyard.submit(python("import time; time.sleep(600)"), folder=tmp_path, time="3s")
    with pytest.raises(runyard.NobodyWorks, match=f"{job.id} is not done"):
        runyard.job(job.id).wait(LONG)


def test_waiting_ends_where_nobody_works_on_it_any_more(tmp_path: Path) -> None:
    job = runyard.submit(python("import time; time.sleep(600)"), folder=tmp_path, time="3s")
    with pytest.raises(runyard.NobodyWorks, match=f"{job.id} is not done"):
        job.wait(LONG)
    assert job.state == "waiting"


def test_a_function_returns_or_raises(functions: ModuleType) -> None:
    job = runyard.submit(functions.power, 3, exponent=4)
    assert job.result(LONG) == 81
    assert job.exception() is None
    assert job.logs() == "the power of 3\n"
    [run] = job.runs()
    assert (run["config"]["base"], run["config"]["exponent"]) == (3, 4)

    failed = runyard.submit(functions.fail, "no such word")
    with pytest.raises(KeyError, match="no such word") as raised:
        failed.result(LONG)
    assert "line 15, in fail\n    raise KeyError(word)" in str(raised.value.__cause__)
    assert isinstance(failed.exception(), KeyError)
    assert failed.state == "failed"


def test_a_killed_function_has_no_result(functions: ModuleType) -> None:
    job = runyard.submit(functions.die)
    with pytest.raises(runyard.JobError, match="has no result, it is failed: killed") as raised:
        job.result(LONG)
    # A kill from outside is no fault of the program's: it was tried again.
    assert set((raised.value.said or "").splitlines()) == {"last words"}
    assert isinstance(job.exception(), runyard.JobError)


def test_a_list_of_calls_is_one_sweep(module_home: Home, functions: ModuleType) -> None:
    jobs = runyard.map(functions.power, range(5), [3] * 5, at_once=2, name="cubes")
    assert [job.result(LONG) for job in jobs] == [0, 1, 8, 27, 64]
    sweep = api_of(module_home).sweeps.find(jobs[0].id)
    assert (sweep["name"], sweep["expected"], sweep["counts"]["finished"]) == ("cubes", 5, 5)
    assert {job.name for job in jobs} == {f"{sweep['id']}:{number}" for number in range(1, 6)}
    assert jobs[3].logs() == "the power of 3\n"
    assert runyard.map(functions.power, []) == []


def test_one_call_of_a_list_is_canceled(functions: ModuleType, tmp_path: Path) -> None:
    jobs = runyard.map(functions.wait_for, [str(tmp_path / "go")] * 4, range(4), at_once=2)
    until((tmp_path / "go.0").exists, "the first", LONG)
    until((tmp_path / "go.1").exists, "the second", LONG)
    jobs[1].cancel()
    jobs[3].cancel()
    assert jobs[1].wait(LONG) in ("stopped", "canceled")
    assert jobs[3].wait(LONG) == "canceled"
    (tmp_path / "go").touch()
    assert [jobs[place].result(LONG) for place in (0, 2)] == [0, 2]
    for place in (1, 3):
        with pytest.raises(runyard.JobError):
            jobs[place].result(LONG)
    assert not (tmp_path / "go.3").exists()


def test_with_cloudpickle_functions_of_the_script_are_sent(tmp_path: Path) -> None:
    folder = CACHE / "cloudpickle"
    packages = ["cloudpickle>=3"]
    try:
        env_python = ensure(
            folder, packages, lambda made: pip_install(made, "cloudpickle", packages)
        )
    except Missing as missing:
        skip_or_fail(str(missing))
    [site] = env_python.parents[1].glob("lib/python*/site-packages")
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=LONG,
        check=False, env={**os.environ, "PYTHONPATH": str(site)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [3, -1, -2]


@pytest.fixture
def sweep_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeConfig:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(WITHOUT_WANDB)

    def make(**parameters: list[float]) -> dict[str, object]:
        values = {name: {"values": value} for name, value in parameters.items()}
        command = [sys.executable, "${program}", "${args}"]
        return {"program": "train.py", "method": "grid", "command": command, "parameters": values}

    return make


def test_a_sweep_in_the_background(sweep_config: MakeConfig, tmp_path: Path) -> None:
    sweep = runyard.sweep(sweep_config(lr=[1, 2, 3]), wait=False, slots=2, project="behind")
    assert sweep.wait(LONG) is sweep
    assert sweep.state == sweep["state"] == "finished"
    assert repr(sweep) == f"<Sweep {sweep.id} finished, 3 of 3 trials done>"
    assert sorted(trial["values"]["lr"] for trial in sweep.trials()) == [1, 2, 3]
    assert sorted(line.split("\t")[0] for line in sweep.logs().splitlines()) == [
        "lr1", "lr2", "lr3",
    ]  # fmt: skip
    assert {run["project"] for run in sweep.runs()} == {"behind"}
    assert sweep.best() is None
    assert dict(sweep)["counts"]["finished"] == 3

    file = tmp_path / "sweep.json"
    file.write_text(json.dumps(sweep_config(seconds=[600, 601])))
    endless = runyard.sweep(file, wait=False)
    until(lambda: any(trial["state"] == "running" for trial in endless.trials()), "it", LONG)
    endless.cancel()
    assert endless.wait(LONG)["state"] == "canceled"


def test_what_is_asked_of_a_cluster_is_not_forgotten_here(
    sweep_config: MakeConfig,
) -> None:
    with pytest.raises(UsageError, match="time: for a job of the cluster"):
        runyard.sweep(sweep_config(lr=[1]), time="1h")


def test_the_page_is_true(tmp_path: Path) -> None:
    """docs/python.md: its files, its commands and what they print."""
    folder = tmp_path / "birds"
    folder.mkdir()
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    run_tutorial(DOCS / "python.md", folder, {**os.environ, "PATH": path})
