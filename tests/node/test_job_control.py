"""`runyard run` under a shell with job control: Ctrl-Z, fg, bg, and whose the terminal is."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.node.terminals import Terminal, until
from tests.node.test_signals import (
    CTRL_C,
    CTRL_Z,
    RUN,
    counter,
    process_state,
    running_with,
    wait_ready,
)

pytestmark = [pytest.mark.live, pytest.mark.usefixtures("yard")]


class Shell(Terminal):
    """An interactive bash with job control."""

    def __init__(self) -> None:
        plain = {"PS1": "ready> ", "TERM": "dumb"}
        super().__init__(["bash", "--norc", "--noprofile", "-i"], env=plain)

    def __enter__(self) -> Shell:
        self.prompt()
        return self

    def prompt(self) -> None:
        self.expect("ready> ")


COMMAND = subprocess.list2cmdline(RUN)


def test_ctrl_z_stops_both_and_fg_continues(tmp_path: Path) -> None:
    with Shell() as shell:
        shell.type(f"{COMMAND} {_ticker(tmp_path)}\n")
        pid = wait_ready(tmp_path)
        shell.type(CTRL_Z)
        shell.expect("Stopped")
        shell.prompt()
        until(lambda: process_state(pid) == "T", "the program to be stopped")
        shell.type("fg\n")
        until(lambda: process_state(pid) != "T", "the program to go on")
        until(lambda: shell.foreground_group() == pid, "the program in front")
        shell.type("word\n")
        shell.expect("heard word")
        shell.prompt()
        shell.type("echo code $?\n")
        shell.expect("code 0")


def test_ctrl_c_after_ctrl_z_and_fg_ends_the_program(tmp_path: Path) -> None:
    with Shell() as shell:
        shell.type(f"{COMMAND} {_ticker(tmp_path)}\n")
        pid = wait_ready(tmp_path)
        shell.type(CTRL_Z)
        shell.expect("Stopped")
        shell.prompt()
        shell.type("fg\n")
        until(lambda: shell.foreground_group() == pid, "the program in front")
        shell.type(CTRL_C)
        shell.prompt()
        shell.type("echo code $?\n")
        shell.expect("code 130")


def test_a_background_job_is_brought_to_the_front(tmp_path: Path) -> None:
    with Shell() as shell:
        shell.type(f"{COMMAND} {_ticker(tmp_path)} &\n")
        pid = wait_ready(tmp_path)
        # It reads from the terminal, which a job in the background may not. The shell tells of it
        # before its next prompt, if runyard has been stopped by then.
        until(lambda: process_state(pid) == "T", "the program to want the terminal")
        until(lambda: process_state(_parent(pid)) == "T", "runyard to stop with it")
        shell.type("\n")
        shell.expect("Stopped")
        shell.type("fg\n")
        until(lambda: shell.foreground_group() == pid, "the program in front")
        shell.type("word\n")
        shell.expect("heard word")
        shell.prompt()


def test_a_running_background_job_hears_ctrl_c_and_ctrl_z_once_in_front(tmp_path: Path) -> None:
    """`fg` of a running job sends nothing: runyard is in front, and passes on what is typed."""
    with Shell() as shell:
        shell.type(f"{COMMAND} {subprocess.list2cmdline(_quoted(counter(tmp_path)))} &\n")
        pid = wait_ready(tmp_path)
        shell.type("fg\n")
        until(lambda: shell.foreground_group() not in (shell.process.pid, pid), "runyard in front")
        shell.type(CTRL_Z)
        shell.expect("Stopped")
        until(lambda: process_state(pid) == "T", "the program to be stopped")
        shell.type("fg\n")
        until(lambda: shell.foreground_group() == pid, "the program in front")
        shell.type(CTRL_C)
        shell.expect("caught 1\r\n")
        shell.prompt()


def test_a_job_in_the_background_never_takes_the_terminal(tmp_path: Path) -> None:
    """Started in front, stopped, sent to the back: its end leaves the terminal where it is."""
    with Shell() as shell:
        # It starts nothing: a shell that is stopped between vfork and exec waits for its child.
        os.mkfifo(tmp_path / "end")
        (tmp_path / "program").write_text(f"echo > {tmp_path}/ready; read line < {tmp_path}/end")
        shell.type(f"{COMMAND} sh {tmp_path}/program\n")
        until((tmp_path / "ready").exists, "the program")
        shell.type(CTRL_Z)
        shell.expect("Stopped")
        shell.prompt()
        shell.type("bg\n")
        shell.prompt()
        shell.type("cat\n")
        until(lambda: shell.foreground_group() != shell.process.pid, "cat in front")
        in_front = shell.foreground_group()
        (tmp_path / "end").write_text("now\n")
        until(lambda: not running_with(str(tmp_path / "program")), "the end of the run")
        assert shell.foreground_group() == in_front
        shell.type("still\n")
        shell.expect("still\r\n(.*\r\n)*still\r\n")
        shell.type("\x04")
        shell.prompt()


def test_a_program_that_is_not_there_leaves_the_terminal_with_the_shell() -> None:
    with Shell() as shell:
        shell.type(f"{COMMAND} no-such-program\n")
        shell.expect("cannot start")
        shell.prompt()
        shell.type("echo code $?\n")
        shell.expect("code 127")


def _parent(pid: int) -> int:
    return int(subprocess.check_output(["ps", "-o", "ppid=", "-p", str(pid)], text=True))


def _ticker(folder: Path) -> str:
    """A program that says it is there, then waits for a line."""
    path = folder / "program"
    path.write_text(
        f"echo $$ > {folder}/pid; mv {folder}/pid {folder}/ready; read line; echo heard $line\n"
    )
    return f"sh {path}"


def _quoted(words: list[str]) -> list[str]:
    (Path(words[-1]) / "counter.py").write_text(words[-2])
    return [words[0], str(Path(words[-1]) / "counter.py"), words[-1]]
