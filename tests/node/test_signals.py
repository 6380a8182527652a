"""Ctrl-C and kill do to a program under `runyard run` what they do without it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from runyard.home import Home
from tests.conftest import run_runyard
from tests.node.terminals import PATIENCE, RUNYARD, Terminal, started, until

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("yard")]

RUN = (*RUNYARD, "run", "-q", "--")
CTRL_C, CTRL_Z = "\x03", "\x1a"

# Counts SIGINT, goes on for a moment in which a second one would come, then tells.
COUNTER = """
import os, signal, sys, time
count = 0
def caught(*_):
    global count
    count += 1
signal.signal(signal.SIGINT, caught)
with open(sys.argv[1] + "/pid", "w") as file: file.write(str(os.getpid()))
os.rename(sys.argv[1] + "/pid", sys.argv[1] + "/ready")
end = time.monotonic() + 180
while not count and time.monotonic() < end: time.sleep(0.01)
end = time.monotonic() + 0.4
while time.monotonic() < end: time.sleep(0.01)
print("caught", count, flush=True)
"""


def counter(folder: Path) -> list[str]:
    return [sys.executable, "-c", COUNTER, str(folder)]


def wait_ready(folder: Path) -> int:
    until((folder / "ready").exists, "the program")
    return int((folder / "ready").read_text())


def wait_program_in_front(terminal: Terminal) -> None:
    shell = terminal.process.pid
    until(lambda: terminal.foreground_group() != shell, "the program in front")


def state_of(name: str) -> str:
    state: str = json.loads(run_runyard("show", name, "--json").stdout)["state"]
    return state


def test_ctrl_c_on_a_terminal_comes_once(tmp_path: Path) -> None:
    with Terminal([*RUN, *counter(tmp_path)]) as terminal:
        wait_ready(tmp_path)
        terminal.type(CTRL_C)
        terminal.expect("caught 1\r\n")
        assert terminal.wait() == 0


@pytest.mark.parametrize("kill", [os.kill, os.killpg], ids=["alone", "its-group"])
def test_an_interrupt_sent_to_runyard_comes_once(
    kill: Callable[[int, int], None], tmp_path: Path
) -> None:
    with started("run", "-q", "--", *counter(tmp_path)) as process:
        wait_ready(tmp_path)
        kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    assert (out, err, process.returncode) == (b"caught 1\n", b"", 0)


def test_an_interrupt_sent_to_runyard_on_a_terminal_comes_once(tmp_path: Path) -> None:
    with Terminal([*RUN, *counter(tmp_path)]) as terminal:
        wait_ready(tmp_path)
        os.kill(terminal.process.pid, signal.SIGINT)
        terminal.expect("caught 1\r\n")
        assert terminal.wait() == 0


def test_one_ctrl_c_ends_a_loop_of_runs(tmp_path: Path) -> None:
    loop = f'for i in 1 2 3; do echo "round $i"; {subprocess.list2cmdline(RUN)} sleep 30; done'
    for shell in ("bash", "sh"):
        with Terminal([shell, "-c", loop + "; echo not reached"]) as terminal:
            terminal.expect("round 1")
            wait_program_in_front(terminal)
            terminal.type(CTRL_C)
            assert terminal.wait() == -signal.SIGINT
            assert b"round 2" not in terminal.seen
            assert b"not reached" not in terminal.seen


def test_an_interrupt_of_the_program_alone_does_not_end_the_script(tmp_path: Path) -> None:
    """As without runyard: bash goes on where its own Ctrl-C was not typed."""
    script = '"$@"; echo "code $?"'
    with Terminal(["bash", "-c", script, "-", *RUN, "sleep", "30"]) as terminal:
        wait_program_in_front(terminal)
        children = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(terminal.process.pid)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        os.kill(int(children[0]), signal.SIGINT)
        terminal.expect("code 130")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_what_ends_runyard_ends_the_program_and_kills_the_run(
    number: signal.Signals, tmp_path: Path
) -> None:
    name = f"ended-by-{number.name}"
    script = f"echo $$ > {tmp_path}/pid; mv {tmp_path}/pid {tmp_path}/ready; exec sleep 60"
    with started("run", "-q", "-e", name, "--", "sh", "-c", script) as process:
        pid = wait_ready(tmp_path)
        process.send_signal(number)
        assert process.wait(PATIENCE) == -number
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert state_of(name) == "killed"


def test_no_signal_is_lost_on_a_thread_of_ours() -> None:
    """The kernel gives a second signal to another thread while the first is under way."""
    script = (
        "import signal, time\n"
        "seen = set()\n"
        "for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM, signal.SIGHUP):\n"
        "    signal.signal(number, lambda number, _: seen.add(number))\n"
        "print('ready', flush=True)\n"
        "while len(seen) < 4: time.sleep(0.01)\n"
    )
    with started("run", "-q", "--", sys.executable, "-c", script) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM, signal.SIGHUP):
            process.send_signal(number)
        assert process.wait(PATIENCE) == 0


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT])
def test_other_signals_are_passed_on(number: signal.Signals) -> None:
    script = f"trap 'echo got; exit 3' {number.name[3:]}; echo ready; while :; do sleep 0.05; done"
    with started("run", "-q", "--", "sh", "-c", script) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        assert process.stdout.readline() == b"got\n"
        assert process.wait(PATIENCE) == 3


def test_what_our_caller_ignores_the_program_ignores(tmp_path: Path) -> None:
    """`nohup runyard run ... &` outlives the terminal."""
    script = (
        "import signal; print(*(signal.getsignal(n) is signal.SIG_IGN for n in"
        " (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)))"
    )
    done = subprocess.run(
        ["sh", "-c", 'trap "" HUP INT; "$@"', "-", *RUN, sys.executable, "-c", script],
        capture_output=True,
        timeout=PATIENCE,
        check=True,
    )
    assert done.stdout == b"True True False\n"


def test_nohup_outlives_a_hangup(tmp_path: Path) -> None:
    script = f"echo $$ > {tmp_path}/pid; mv {tmp_path}/pid {tmp_path}/ready; read line; echo over"
    with subprocess.Popen(
        ["nohup", *RUN, "sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        pid = wait_ready(tmp_path)
        os.kill(process.pid, signal.SIGHUP)
        os.kill(pid, signal.SIGHUP)
        assert process.communicate(b"go\n", timeout=PATIENCE)[0] == b"over\n"
    assert process.returncode == 0


def test_a_closed_terminal_ends_the_program(tmp_path: Path) -> None:
    script = f"echo $$ > {tmp_path}/pid; mv {tmp_path}/pid {tmp_path}/ready; exec sleep 60"
    with Terminal([*RUNYARD, "run", "-e", "hung-up", "--", "sh", "-c", script]) as terminal:
        pid = wait_ready(tmp_path)
        terminal.hang_up()
        until(lambda: not _lives(pid), "the program's end")
        assert terminal.process.wait(PATIENCE) == -signal.SIGHUP
    assert state_of("hung-up") == "killed"


def test_a_program_that_is_stopped_alone_is_continued_alone(tmp_path: Path) -> None:
    with started("run", "-q", "--", *counter(tmp_path)) as process:
        pid = wait_ready(tmp_path)
        for number in (signal.SIGSTOP, signal.SIGTSTP):
            os.kill(pid, number)
            until(lambda: process_state(pid) == "T", "the program to be stopped")
            os.kill(pid, signal.SIGCONT)
            until(lambda: process_state(pid) != "T", "the program to go on")
        os.kill(pid, signal.SIGINT)
        assert process.communicate(timeout=PATIENCE)[0] == b"caught 1\n"


def test_an_impatient_user_is_not_held_up_by_the_delivery(yard: Home) -> None:
    """The server hangs, the program has ended, Ctrl-C comes: the record stays for the server."""
    run_runyard("run", "-q", "true")
    server = json.loads(run_runyard("server", "status", "--json").stdout)["pid"]
    with started(
        "run", "-e", "impatient", "--", "sh", "-c", "echo ready; kill -STOP $0; exit 4", str(server)
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            until(
                lambda: any("exit_code" in path.read_text() for path in yard.spool.glob("*.json")),
                "the record",
            )
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 4
            assert process.stderr is not None
            assert b"could not be delivered yet" in process.stderr.read()
        finally:
            os.kill(server, signal.SIGCONT)
    run_runyard("server", "restart")
    shown = json.loads(run_runyard("show", "impatient", "--json").stdout)
    assert (shown["state"], shown["exit_code"]) == ("failed", 4)
    assert run_runyard("logs", "impatient").stdout == "ready\n"
    assert list(yard.spool.iterdir()) == []


# `runyard`, but a signal comes when the program has ended and its end was just written down.
HEARS_LATE = """
import os, signal, sys
from runyard.cli.main import main
from runyard.node.attempt.records import Record
write = Record.write
def write_and_hear(record, **more):
    write(record, **more)
    if "exit_code" in more:
        os.kill(os.getpid(), signal.SIGTERM)
Record.write = write_and_hear
sys.exit(main())
"""


@pytest.mark.parametrize("server_hangs", [True, False])
def test_a_signal_between_the_programs_end_and_the_delivery_is_heard(
    yard: Home, server_hangs: bool
) -> None:
    run_runyard("run", "-q", "true")
    server = json.loads(run_runyard("server", "status", "--json").stdout)["pid"]
    name = f"late-{server_hangs}"
    script = "kill -STOP $0; exit 4" if server_hangs else "exit 4"
    try:
        done = subprocess.run(
            [sys.executable, "-c", HEARS_LATE, "run", "-e", name, "--", "sh", "-c", script,
             str(server)],
            capture_output=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
    finally:
        os.kill(server, signal.SIGCONT)
    assert done.returncode == 4
    assert (b"could not be delivered yet" in done.stderr) == server_hangs
    if server_hangs:
        run_runyard("server", "restart")
    shown = json.loads(run_runyard("show", name, "--json").stdout)
    assert (shown["state"], shown["exit_code"]) == ("failed", 4)
    assert list(yard.spool.iterdir()) == []


def process_state(pid: int) -> str:
    return subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True
    ).stdout[:1]


def _lives(pid: int) -> bool:
    return process_state(pid) not in ("", "Z")


def running_with(word: str) -> bool:
    return (
        word
        in subprocess.run(
            ["ps", "-ww", "-A", "-o", "command="], capture_output=True, text=True
        ).stdout
    )
