"""Jobs on a machine without Slurm, a laptop say: what the server knows of them, and its age."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard.cli.connect import server
from runyard.client.api import Api
from runyard.home import Home
from tests.conftest import run_runyard
from tests.node.terminals import RUNYARD, Terminal

LONG_AGO = 90 * 60


@pytest.fixture(scope="module")
def api(
    module_home: Home,
    module_environment: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Api]:
    folder = tmp_path_factory.mktemp("path")
    (folder / "python").symlink_to(sys.executable)
    for program in ("ps", "sh"):
        (folder / program).symlink_to(shutil.which(program) or "")
    module_environment.setenv("PATH", str(folder))
    module_environment.delenv("SLURM_CONF", raising=False)
    found = server(module_home, quiet=True)
    yield found
    found.close()


@pytest.fixture(scope="module", autouse=True)
def jobs(api: Api, tmp_path_factory: pytest.TempPathFactory) -> None:
    """An array that waits, as it was an hour and a half ago; and one that has ended."""
    folder = tmp_path_factory.mktemp("a job")
    (folder / "script.sh").write_text("#!/bin/bash\n#SBATCH --mem=4G\n")
    (folder / "7_1.log").write_text("from one\n")
    (folder / "7_2.log").write_text("from two\n")
    now = time.time()
    waiting = api.jobs.record(
        {"cluster": "narval", "job_id": "9", "kind": "agents", "name": "farm-birds",
         "submitted_at": now - LONG_AGO, "array": "1-20", "tasks": 20,
         "asked": {"gpus": 1, "gpu_type": "a100", "memory": 4096, "time": 7200.0}}
    )  # fmt: skip
    reason = "Priority: others are before it in the queue; it starts when its turn comes"
    api.jobs.update(
        waiting["key"],
        {"polled_at": now - LONG_AGO, "states": {"PENDING": 20}, "reason": reason,
         "starts_at": now + 1200},
    )  # fmt: skip
    ended = api.jobs.record(
        {"cluster": "narval", "job_id": "7", "kind": "agents", "name": "old",
         "submitted_at": now - 2 * LONG_AGO, "array": "1-2", "tasks": 2, "folder": str(folder),
         "log_pattern": f"{folder}/%A_%a.log", "asked": {"memory": 4096}}
    )  # fmt: skip
    api.jobs.update(
        ended["key"],
        {"polled_at": now - LONG_AGO, "states": {"COMPLETED": 1, "OUT_OF_MEMORY": 1},
         "started_at": now - 2 * LONG_AGO, "ended_at": now - LONG_AGO,
         "used": {"longest_seconds": 60.0, "limit_seconds": 600.0, "memory_peak": 4 << 30,
                  "cpu_seconds": 30.0, "cpu_seconds_held": 60.0}},
    )  # fmt: skip


def test_what_is_known_is_shown_with_its_age() -> None:
    shown = run_runyard("status").stdout
    assert "job 9  20 tasks: 20 waiting  farm-birds" in shown
    assert "each asks for 1 a100 GPU, 4 GB, 2 h 0 min" in shown
    assert "waits: Priority: others are before it in the queue" in shown
    assert "may start" in shown
    assert "this machine does not belong to narval; jobs as they were 90 min ago" in shown
    told = json.loads(run_runyard("status", "9", "--json").stdout)
    assert told["jobs"][0]["states"] == {"PENDING": 20}
    assert told["jobs"][0]["is_stuck"] is False
    assert "does not belong to narval" in told["slurm"]["trouble"]


def test_the_history_needs_no_slurm() -> None:
    listed = run_runyard("status", "--jobs").stdout
    assert "1 done, 1 out of memory" in listed
    assert "60 s (10%)" in listed
    assert "4 GB (100%)" in listed
    one = run_runyard("status", "7", "--jobs").stdout
    assert "longest task 60 s of 10 min" in one
    assert "#SBATCH --mem=4G" in one
    assert run_runyard("status", "7", "--script").stdout == "#!/bin/bash\n#SBATCH --mem=4G\n"


def test_the_logs_need_no_slurm_either() -> None:
    assert run_runyard("logs", "7").stdout == "7_1\tfrom one\n7_2\tfrom two\n"
    assert run_runyard("logs", "-f", "7_2").stdout == "7_2\tfrom two\n"
    nothing = run_runyard("logs", "9")
    assert (nothing.stdout, "has printed nothing" in nothing.stderr) == ("", True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("cancel", "9"), "job 9 is not on this cluster but on narval"),
        (("clusters", "partitions"), "there is no Slurm here"),
        (("status", "12345"), "there is no Slurm here"),
        (("shell", "9_1"), "there is no Slurm here"),
        (("retry", "9"), "ran no trials that runyard knows"),
        (("retry", "--memory", "+x%"), "'+x%'"),
        (("status", "9", "--script"), "the script of job 9 is not there"),
        (("logs", "12345"), "runyard has submitted no job 12345"),
    ],
)
def test_what_cannot_be_done_here_is_told(words: tuple[str, ...], said: str) -> None:
    done = run_runyard(*words)
    assert done.returncode in (1, 2)
    assert said in done.stderr
    assert "try:" in done.stderr


def test_many_are_ended_only_after_a_question(api: Api) -> None:
    with Terminal([*RUNYARD, "cancel", "9"], columns=80) as terminal:
        terminal.expect("end job 9 with its 20 tasks")
        terminal.type("n\n")
        terminal.expect("nothing was cancelled")
        assert terminal.wait() == 2
    assert api.jobs.job("9")["ended_at"] is None


def test_eighty_columns_are_enough(tmp_path: Path) -> None:
    with Terminal([*RUNYARD, "status"], columns=80) as terminal:
        assert terminal.wait() == 0
        shown = terminal.seen.decode()
    assert "20 waiting" in shown
    assert max(len(line) for line in shown.replace("\033[33m", "").splitlines()) <= 80


def test_the_sites_own_commands_are_used_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, lines in (("hours", 'echo "used: $1"; exit 3'), ("figures", "exit 0")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{lines}\n")
        (tmp_path / name).chmod(0o755)
    profile = tmp_path / "lab.yaml"
    profile.write_text(
        "accounting: {usage_command: hours 'all of it', efficiency_command: figures}"
    )
    monkeypatch.setenv("RUNYARD_CLUSTERS", str(tmp_path))
    monkeypatch.setenv("RUNYARD_CLUSTER", "lab")
    here = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    told = run_runyard("clusters", "usage", env=here)
    assert (told.stdout, told.returncode) == ("used: all of it\n", 3)
    assert "as the site tells it: hours 'all of it'" in told.stderr
    assert json.loads(run_runyard("clusters", "usage", "--ledger", "--json", env=here).stdout)[
        "accounts"
    ]
    assert (
        "as the site tells it:  figures 7" in run_runyard("status", "7", "--jobs", env=here).stderr
    )
    assert "as the site tells it" not in run_runyard("status", "9", "--jobs", env=here).stderr

    gone = run_runyard("clusters", "usage")
    assert gone.returncode == 1
    assert "the site's command does not answer: hours 'all of it'" in gone.stderr
    assert "--ledger" in gone.stderr
    assert "figures" not in run_runyard("status", "7", "--jobs").stderr
