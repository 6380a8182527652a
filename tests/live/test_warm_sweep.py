"""Sweeps and lists whose programs are forked from a warm parent, with the stock wandb client."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import runyard
from runyard.home import Home
from tests.conftest import run_runyard, wait_until
from tests.live.sweeping import (
    WITH_WANDB,
    agents_of,
    api_of,
    processes_of,
    started_sweep,
    with_python,
    write_sweep,
)
from tests.live.test_farm import LONG, newest
from tests.node.test_warm_start import SLOW

pytestmark = pytest.mark.live

# Says whether the module was there before, and whose child it is.
SAYS = """\
import os, sys, time
was_there = "slow" in sys.modules
import slow
print("warm" if was_there else "cold", os.environ["RUNYARD_ATTEMPT"], flush=True)
"""


@pytest.fixture(autouse=True)
def _one_server(module_home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """All tests of this module share a server."""
    for name, value in with_python().items():
        monkeypatch.setenv(name, value)


def write(folder: Path, program: str, **config: object) -> None:
    write_sweep(folder, program, **config)
    (folder / "slow.py").write_text(SLOW)


def imports(folder: Path) -> int:
    return len((folder / "imports").read_text().splitlines())


def test_a_sweep_imports_once_and_logs_by_the_stock_client(
    module_home: Home, tmp_path: Path
) -> None:
    write(
        tmp_path, SAYS + WITH_WANDB, parameters={"lr": {"values": [0.1, 0.2, 0.3, 0.4]}},
        metric={"name": "loss"}, runyard={"warm": ["slow", "wandb"]},
    )  # fmt: skip
    ended = run_runyard("sweep", "sweep.yaml", "-j", "2", cwd=tmp_path, timeout=LONG)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.count("slow, wandb imported once") == 1, ended.stderr
    assert imports(tmp_path) == 1
    sweep = newest(module_home)
    trials = api_of(module_home).sweeps.trials(sweep["key"])
    losses = {round(trial["value"] or 0.0, 6) for trial in trials}
    assert losses == {0.09, 0.19, 0.29, 0.39}
    for trial in trials:
        run = api_of(module_home).run(trial["id"])
        assert run["state"] == "finished"
        assert "warm 1" in api_of(module_home).console(run)["text"]
    assert not processes_of(module_home, "fork_server")


def test_lines_of_a_list_are_warm_where_they_are_pythons(module_home: Home, tmp_path: Path) -> None:
    write(tmp_path, SAYS)
    lines = ["python train.py --x 1", "python -m train --x 2", "python train.py --x 3 | cat"]
    (tmp_path / "tasks.txt").write_text("\n".join(lines))
    words = ("farm", "tasks.txt", "--warm", "slow", "--no-check")
    ended = run_runyard(*words, cwd=tmp_path, timeout=LONG)
    assert ended.returncode == 0, ended.stderr
    folder = tmp_path / "sweeps" / newest(module_home)["id"]
    said = [file.read_text().split()[0] for file in sorted(folder.glob("*/output.log"))]
    assert sorted(said) == ["cold", "warm", "warm"]
    assert ended.stderr.count("start cold") == 1, ended.stderr
    assert imports(tmp_path) == 2, "the parent's, and that of the cold one"


SAVES = """\
import os, sys, time
was_there = "slow" in sys.modules
import slow
from runyard import train
state = train.Checkpoint(every_steps=1, value=0)
start = state.resume()
with open("starts", "a") as file:
    print(was_there, os.environ["RUNYARD_ATTEMPT"], start, file=file)
for step in train.steps(start, 6, state, show=False):
    state.value += 1
    print("step", step, flush=True)
    if step == 3 and start == 0:
        open("is-there", "w").close()
        time.sleep(600)
assert state.value == 6, state.value
"""


@pytest.mark.parametrize("kill", [signal.SIGTERM, signal.SIGKILL])
def test_cut_off_it_goes_on_from_its_checkpoint(
    module_home: Home, tmp_path: Path, kill: signal.Signals
) -> None:
    write(tmp_path, SAVES, parameters={"x": {"values": [1]}}, runyard={"warm": "slow"})
    with started_sweep(module_home, "sweep.yaml", cwd=tmp_path):
        wait_until((tmp_path / "is-there").exists)
        os.kill(agents_of(module_home)[0], kill)
        # Killed at once, it leaves its programs and their parent to its keeper.
        wait_until(lambda: not processes_of(module_home, "train.py|fork_server|node"))
    ended = run_runyard("sweep", newest(module_home)["id"], cwd=tmp_path, timeout=LONG)
    assert ended.returncode == 0, ended.stderr
    starts = [line.split() for line in (tmp_path / "starts").read_text().splitlines()]
    assert [(warm, attempt) for warm, attempt, _ in starts] == [("True", "1"), ("True", "2")]
    assert int(starts[1][2]) in (3, 4)


def test_calls_from_python_are_warm(
    module_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "calls.py").write_text(
        "import sys\ndef has_module(number):\n    return 'slow' in sys.modules, number\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    import calls  # type: ignore[import-not-found]

    has_module: Callable[[int], tuple[bool, int]] = calls.has_module
    jobs = runyard.map(has_module, [1, 2, 3], on="here", warm="slow")
    assert [job.result() for job in jobs] == [(True, 1), (True, 2), (True, 3)]
    sys.modules.pop("calls")
