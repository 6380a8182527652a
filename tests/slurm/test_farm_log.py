"""The job log of a list whose agents are jobs: they write it, since no command watches."""

from __future__ import annotations

import pytest

from runyard.actions.sweeping.job_log import read_job_log
from runyard.client.job_log import COLUMNS
from tests.node.terminals import until
from tests.slurm.yard import Yard

pytestmark = pytest.mark.slurm

LINES = ["echo one", "exit 3", "echo three; sleep 1", "kill -9 $$", "echo five", "echo six"]


def test_a_farm_on_the_cluster_has_the_log_that_it_has_here(module_yard: Yard) -> None:
    yard = module_yard
    yard.write("tasks.txt", "\n".join(LINES))
    words = ("--on", "slurm", "--agents", "2", "--time", "5m")
    usual = yard.submit("farm", "tasks.txt", *words)
    named = yard.submit("farm", "tasks.txt", *words, "--joblog", "logs/mine")
    places = {
        usual["sweep"]: yard.project / "sweeps" / usual["sweep"] / "joblog",
        named["sweep"]: yard.project / "logs" / "mine",
    }
    for sweep, path in places.items():
        yard.ended(sweep)
        until(lambda path=path: len(read_job_log(path)) == len(LINES), "all rows", 60)  # type: ignore[misc]
        lines = path.read_text().splitlines()
        assert lines[0].split("\t") == list(COLUMNS)
        assert len(lines) == 1 + len(LINES), "each row once"
        rows = read_job_log(path)
        assert [rows[number].command_line for number in sorted(rows)] == LINES
        ends = {number: (row.exit_value, row.signal) for number, row in rows.items()}
        assert (ends.pop(2), ends.pop(4)) == ((3, 0), (0, 9))
        assert set(ends.values()) == {(0, 0)}
        assert rows[1].received == len("one\n")
        assert rows[3].seconds >= 1

    # A command on this machine goes on with it, and writes nothing twice.
    again = ("farm", "tasks.txt", "--resume-failed", "--joblog", "logs/mine", "--dry-run")
    assert "2 command lines" in yard.type(*again).stdout
    yard.type("retry", usual["sweep"], "--on", "here", check=False)  # They fail again.
    written = places[usual["sweep"]].read_text().splitlines()[1:]
    assert sorted(int(line.split("\t")[0]) for line in written) == [1, 2, 2, 3, 4, 4, 5, 6]
