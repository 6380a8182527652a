"""Looking on from another terminal, and lists that end before their end."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard.home import Home
from tests.conftest import run_runyard
from tests.live.sweeping import processes_of
from tests.live.test_ctrl_c import PROGRAM
from tests.live.test_farm import begun, newest
from tests.live.test_sweep_command import LONG, _python
from tests.node.terminals import Terminal, until

pytestmark = pytest.mark.live


@pytest.fixture(autouse=True)
def _one_server(module_home: Home) -> None:
    """All tests of this module share a server."""


@pytest.fixture
def watched(module_home: Home, tmp_path: Path) -> Iterator[Terminal]:
    """`runyard status SWEEP --watch` at a terminal, while two lines wait to be let go."""
    (tmp_path / "wait.py").write_text(PROGRAM)
    (tmp_path / "tasks.txt").write_text(f"{_python()} wait.py\n" * 2)
    with begun("farm", "tasks.txt", "-j", "2", cwd=tmp_path) as working:
        until(lambda: len(processes_of(module_home, r"^\S+ wait\.py")) == 2, "both lines", LONG)
        sweep = newest(module_home)["id"]
        words = f'exec "$0" -m runyard status {sweep} --watch'
        with Terminal(["sh", "-c", words, _python()], columns=80) as terminal:
            terminal.expect("2 running", LONG)
            yield terminal
        (tmp_path / "go").touch()
        working.wait(LONG)


def test_it_is_shown_anew_until_it_is_over(watched: Terminal, tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    watched.expect("2 finished", LONG)
    assert watched.wait(LONG) == 0


def test_ctrl_c_ends_the_looking_and_nothing_else(watched: Terminal, module_home: Home) -> None:
    watched.type("\x03")
    assert watched.wait(LONG) == -signal.SIGINT
    assert b"Traceback" not in watched.seen
    assert newest(module_home)["counts"]["running"] == 2


@pytest.mark.parametrize("when", ["5%", "soon,fail=2"])
def test_a_list_begins_no_more_when_so_many_have_failed(
    module_home: Home, tmp_path: Path, when: str
) -> None:
    lines = ["false", "false", *["sleep 0.4; echo x >> ran"] * 38]
    (tmp_path / "tasks.txt").write_text("\n".join(lines))
    ended = run_runyard("farm", "tasks.txt", "--halt", when, cwd=tmp_path, timeout=LONG)
    assert ended.returncode == 2
    assert "2 failed: no more begin, and what runs may finish" in ended.stderr
    counts = newest(module_home)["counts"]
    assert (counts["failed"], counts["canceled"]) == (2, 0)
    ran = (tmp_path / "ran").read_text().count("x") if (tmp_path / "ran").exists() else 0
    assert ran == counts["finished"] < 38


def test_a_list_that_is_never_to_halt_runs_to_its_end(module_home: Home, tmp_path: Path) -> None:
    (tmp_path / "tasks.txt").write_text("false\nfalse\ntrue\n")
    ended = run_runyard("farm", "tasks.txt", "--halt", "never", cwd=tmp_path, timeout=LONG)
    assert ended.returncode == 2
    assert newest(module_home)["counts"]["finished"] == 1
