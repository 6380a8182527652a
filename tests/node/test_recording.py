"""What a program printed is kept, whoever dies meanwhile."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runyard.home import Home, prepare, read_discovery
from tests.conftest import RunRunyard, end_server, run_runyard
from tests.node.terminals import PATIENCE, RUNYARD, Terminal, started, until

pytestmark = pytest.mark.live

# Prints a line whenever one is typed.
ECHO = "echo ready; while read line; do echo $line; done; echo over"


def shown(name: str) -> dict[str, Any]:
    detail: dict[str, Any] = json.loads(run_runyard("show", name, "--json").stdout)
    return detail


def test_the_console_is_what_was_printed(runyard: RunRunyard, state_folder: Home) -> None:
    script = "printf 'one\\ntwo \\303\\251\\n'; printf 'err\\n' >&2; printf '\\377 no end'"
    printed = subprocess.run(
        [*RUNYARD, "run", "-q", "-e", "printer", "--", "sh", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=True,
    ).stdout
    assert printed == b"one\ntwo \xc3\xa9\nerr\n\xff no end"
    logged = subprocess.run([*RUNYARD, "logs", "printer"], capture_output=True, check=True).stdout
    assert logged == printed.replace(b"\xff", "\N{REPLACEMENT CHARACTER}".encode())
    assert shown("printer")["attempts"][0]["console_bytes"] == len(printed)
    assert list(state_folder.spool.iterdir()) == []


def test_the_console_of_a_terminal_is_what_was_printed(state_folder: Home) -> None:
    with Terminal(
        [*RUNYARD, "run", "-q", "-e", "bar", "--", "printf", "1%%\\r2%%\\ndone\\n"]
    ) as bar:
        assert bar.wait() == 0
    logged = subprocess.run([*RUNYARD, "logs", "bar"], capture_output=True, check=True).stdout
    assert logged == b"1%\r2%\ndone\n"


def test_a_program_without_wandb_is_recorded(
    runyard: RunRunyard, state_folder: Home, tmp_path: Path
) -> None:
    folder = tmp_path / "spirals"
    folder.mkdir()
    runyard("run", "-q", "--", "sh", "-c", "exit 3", cwd=folder)
    found = json.loads(runyard("runs", "--json").stdout)[0]
    assert found["project"] == "spirals"
    assert found["command"] == ["sh", "-c", "exit 3"]
    assert (found["folder"], found["state"], found["exit_code"]) == (str(folder), "failed", 3)
    assert found["started_at"] <= found["ended_at"]


def test_the_program_gets_what_wandb_needs(runyard: RunRunyard, state_folder: Home) -> None:
    script = "import json, os; print(json.dumps(dict(os.environ)))"
    done = runyard("run", "-q", "-e", "a name", "--tag", "x", "--tag", "y", "--group", "g",
                   "-P", "p", "--notes", "n", sys.executable, "-c", script)  # fmt: skip
    seen, found = json.loads(done.stdout), shown("a name")
    discovery = read_discovery(state_folder)
    assert discovery is not None
    assert seen["WANDB_API_KEY"] != discovery.key
    assert (
        seen.items()
        >= {
            "WANDB_APP_URL": discovery.url,
            "WANDB_RUN_ID": found["id"],
            "WANDB_RESUME": "allow",
            "WANDB_PROJECT": "p",
            "WANDB_NAME": "a name",
            "WANDB_RUN_GROUP": "g",
            "WANDB_NOTES": "n",
            "WANDB_TAGS": "x,y",
            "RUNYARD_ATTEMPT": "1",
        }.items()
    )


def test_what_a_killed_runyard_had_is_taken_in(runyard: RunRunyard, state_folder: Home) -> None:
    runyard("server", "start")
    with started("run", "-e", "orphan", "--", "sh", "-c", ECHO, pipe_input=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.stdin.write(b"word\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"word\n"
        process.kill()
        process.wait(PATIENCE)
        assert [path.suffix for path in sorted(state_folder.spool.iterdir())] == [".json", ".log"]
        assert runyard("server", "restart").returncode == 0
    until(lambda: list(state_folder.spool.iterdir()) == [], "the leftovers to be taken in")
    assert runyard("logs", "orphan").stdout == "ready\nword\n"
    assert shown("orphan")["attempts"][0]["cause"] == "lost"


def test_a_killed_server_is_revived_and_misses_nothing(
    runyard: RunRunyard, state_folder: Home
) -> None:
    runyard("server", "start")
    before = read_discovery(state_folder)
    assert before is not None
    with started("run", "-e", "through", "--", "sh", "-c", ECHO, pipe_input=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        until(lambda: runyard("logs", "through").stdout == "ready\n", "the first line")
        os.kill(before.pid, signal.SIGKILL)
        for number in range(100):
            process.stdin.write(b"line %d\n" % number)
            process.stdin.flush()
            assert process.stdout.readline() == b"line %d\n" % number
        until(lambda: _pid(state_folder) != before.pid, "another server")
        assert _blocked_signals(_pid(state_folder)) == 0
        process.stdin.close()
        assert process.wait(PATIENCE) == 0
    lines = ["ready", *(f"line {number}" for number in range(100)), "over"]
    assert runyard("logs", "through").stdout.splitlines() == lines
    assert shown("through")["state"] == "finished"
    assert state_folder.log.read_text().count(" serves ") == 2


def test_an_end_without_a_server_is_delivered(runyard: RunRunyard, state_folder: Home) -> None:
    """The server dies with the program's last breath: `runyard run` starts it once more."""
    runyard("server", "start")
    pid = _pid(state_folder)
    done = runyard("run", "-e", "last", "--", "sh", "-c", f"echo bye; kill -9 {pid}; exit 5")
    assert done.returncode == 5
    assert "failed after" in done.stderr
    assert runyard("logs", "last").stdout == "bye\n"
    assert (shown("last")["state"], shown("last")["exit_code"]) == ("failed", 5)


def test_a_spool_that_somebody_emptied_does_not_hurt_the_program(
    runyard: RunRunyard, state_folder: Home
) -> None:
    runyard("server", "start")
    script = f"echo one; rm -rf {state_folder.spool}; echo two; exit 6"
    done = runyard("run", "-e", "emptied", "--", "sh", "-c", script)
    assert (done.returncode, done.stdout) == (6, "one\ntwo\n")
    assert "Traceback" not in done.stderr
    assert shown("emptied")["exit_code"] == 6


@pytest.fixture
def small_disk(tmp_path: Path, state_folder: Home) -> Iterator[Path]:
    """A disk of four megabytes for the state folder."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    home = Home(disk / "state")
    try:
        yield disk
    finally:
        end_server(home)
        subprocess.run(["umount", "-l", str(disk)], check=True)


def _fill(disk: Path) -> None:
    with (disk / "filler").open("ab", buffering=0) as filler:
        for size in (65536, 4096, 1):
            try:
                while True:
                    filler.write(b"x" * size)
            except OSError:
                continue


@pytest.mark.parametrize("made_before", [False, True])
def test_a_full_disk_is_told_before_the_program_starts(
    runyard: RunRunyard, small_disk: Path, made_before: bool
) -> None:
    home = Home(small_disk / "state")
    if made_before:
        prepare(home)
    _fill(small_disk)
    done = runyard("run", "echo", "started", env={"RUNYARD_HOME": str(home.path)})
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.count("runyard: ") == 1
    assert str(home.path) in done.stderr
    assert re.search("No space left on device|disk is full", done.stderr)
    assert "free some space" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_disk_that_fills_up_does_not_stop_the_program(
    runyard: RunRunyard, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNYARD_HOME", str(small_disk / "state"))
    assert runyard("server", "start").returncode == 0
    (small_disk / "filler").write_bytes(bytes(2 << 20))
    script = "for i in range(60_000): print('a line of output that fills up the disk', i)\nexit(7)"
    with started("run", "-e", "filler", "--", sys.executable, "-c", script) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(60_000)]
        (small_disk / "filler").unlink()
        assert process.stderr is not None
        err = process.stderr.read()
        assert process.wait(PATIENCE) == 7
    assert lines[-1] == b"a line of output that fills up the disk 59999\n"
    assert b"not all of the console was recorded: [Errno 28]" in err
    assert b"Traceback" not in err
    assert (shown("filler")["state"], shown("filler")["exit_code"]) == ("failed", 7)


def _pid(home: Home) -> int:
    found = read_discovery(home)
    assert found is not None
    return found.pid


def _blocked_signals(pid: int) -> int:
    """What a server that a thread started must not have inherited from it."""
    status = Path(f"/proc/{pid}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return sum(int(line.split()[1], 16) for line in lines if line.startswith("SigBlk"))
