"""Jobs that end, and programs that are told: by a signal, by a file, or not at all."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from runyard.home import Home
from runyard.node.attempt.wandb_file import read_rows
from tests.conftest import RunRunyard, isolate
from tests.live.sweeping import (
    api_of,
    processes_of,
    programs_of,
    started_sweep,
    sweep_json,
    trials_of,
    with_python,
    write_sweep,
)
from tests.node.terminals import until

pytestmark = pytest.mark.live

LONG = 120.0
# Four ways to live with a job's end; the deaf one has no handler, and a signal would be its end.
# The polite one leaves when it is asked to, with 0, as Lightning does.
LISTENERS = """\
import os, signal, sys, time
from pathlib import Path
how = sys.argv[1].partition("=")[2]
place = Path(os.environ["RUNYARD_CHECKPOINT_DIR"]) / "state"
stop = Path(os.environ["RUNYARD_STOP_FILE"])
if place.exists():
    print("went on with", place.read_text(), "stop file:", stop.exists())
    sys.exit(0)
told = []
if how == "signal":
    signal.signal(signal.SIGUSR2, lambda *_: told.append(1))
if how == "polite":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(place.write_text(how) and 0))
Path(f"ready-{how}").touch()
while how in ("deaf", "polite") or not (told if how == "signal" else stop.exists()):
    time.sleep(0.05)
place.write_text(how)
print("saved", float(os.environ.get("RUNYARD_DEADLINE", 0)) - time.time() > 0)
sys.exit(75)
"""


def causes_of(home: Home) -> dict[str, list[str | None]]:
    """Why each attempt of each trial ended."""
    api = api_of(home)
    return {
        str(trial["values"]["how"]): [
            attempt["cause"] for attempt in api.run(trial["id"])["attempts"]
        ]
        for trial in trials_of(home)
    }


def test_programs_are_told_before_the_time_is_up_and_go_on_the_next_time(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    file = write_sweep(
        tmp_path / "p",
        LISTENERS,
        parameters={"how": {"values": ["signal", "file", "deaf", "polite"]}},
    )
    ended = runyard(
        "sweep", str(file), "-j", "4", "--time", "20s", "--grace", "10s",
        env=with_python(), timeout=LONG,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "goes back (time)" in ended.stderr
    assert causes_of(state_folder) == {
        "signal": ["go-on"], "file": ["go-on"], "deaf": ["time"], "polite": ["time"],
    }  # fmt: skip
    assert not processes_of(state_folder, "train|node")
    sweep = sweep_json(runyard)
    assert (sweep["state"], sweep["counts"]["waiting"]) == ("running", 4)

    runyard("sweep", sweep["id"], "-j", "4", "--count", "4", "--time", "8s",
            cwd=tmp_path, env=with_python(), timeout=LONG)  # fmt: skip
    found = causes_of(state_folder)
    assert found["signal"] == found["file"] == ["go-on", "finished"]
    assert found["polite"] == ["time", "finished"]
    trial = next(one for one in trials_of(state_folder) if one["values"]["how"] == "signal")
    logs = runyard("logs", trial["id"]).stdout
    assert logs == "saved True\nwent on with signal stop file: False\n"
    assert "2 attempts: go-on, finished" in runyard("show", trial["id"]).stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR2])
def test_an_agent_that_is_told_to_go_lets_its_programs_save(
    number: signal.Signals, state_folder: Home, tmp_path: Path
) -> None:
    """As scancel, preemption and `--signal=B:USR2@60` tell it."""
    file = write_sweep(tmp_path / "p", LISTENERS, parameters={"how": {"value": "signal"}})
    with started_sweep(state_folder, str(file), cwd=tmp_path) as process:
        until(lambda: list(tmp_path.glob("**/ready-signal")), "the program", LONG)
        (agent,) = (
            pid for pid in processes_of(state_folder, r"node\.agent") if _parent(pid) == process.pid
        )
        os.kill(agent, number)
        process.communicate(timeout=LONG)
        assert causes_of(state_folder) == {"signal": ["go-on"]}
        assert not programs_of(state_folder)


def _parent(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1])


def test_rows_are_read_from_the_clients_own_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    isolate(tmp_path, monkeypatch)
    program = (
        "import wandb\n"
        "run = wandb.init(mode='offline', project='p', dir='.')\n"
        "run.log({'loss': 0.5, 'n': -3, 'big': 2**40, 'ok': True, 'word': 'é', 'none': None,\n"
        "         'nested': {'a': {'b': 1.5}}, 'odd.name': 2, 'list': [1, 2]})\n"
        "for step in range(3000): run.log({'loss': step / 7}, step=2 * step + 5)\n"
        "run.finish()\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, capture_output=True)
    (file,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    rows = list(read_rows(str(file)))
    assert len(rows) == 3001
    first = {name: value for name, value in rows[0].items() if not name.startswith("_")}
    assert first == {
        "loss": 0.5, "n": -3, "big": 2**40, "ok": True, "word": "é", "none": None,
        "nested": {"a": {"b": 1.5}}, "odd.name": 2, "list": [1, 2],
    }  # fmt: skip
    assert [row["_step"] for row in rows] == [0, *range(5, 6005, 2)]
    assert [row["loss"] for row in rows[1:]] == [step / 7 for step in range(3000)]
    assert all(isinstance(row["_timestamp"], float) for row in rows)

    # Cut off anywhere, it gives what is whole.
    whole = file.read_bytes()
    for cut in (3, 7, 20, 32768, 40000, len(whole) - 1):
        file.write_bytes(whole[:cut])
        found = list(read_rows(str(file)))
        assert json.dumps(found) == json.dumps(rows[: len(found)])
    assert len(found) >= 2999
