"""One server a state folder, on hosts whose locks do not meet."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing

import pytest

from tests.conftest import wait_until

from .yard import Yard

pytestmark = pytest.mark.slurm
# Asks for one commit after the other, by the network alone: no file of the hung folder is touched.
WRITE = """
import sys
from pathlib import Path
from runyard.client.discover import connect
from runyard.home import Home, read_discovery
api = connect(read_discovery(Home(Path(sys.argv[1]))), timeout=600)
for number in range(10**9):
    api.figures.add("p", kind=f"k{number}", hardware="h", figures={"text": "x" * 9000})
    print("written", flush=True)
"""


def test_a_server_whose_files_hung_writes_nothing_into_its_followers_database(yard: Yard) -> None:
    """Cut off from network and files in the middle of a commit; when both are back, the commit
    goes on in the kernel: nothing can stop it, so it must not reach the database of now."""
    yard.type("login", "server", "start", "--listen", "cluster")
    yard.type("login", "run", "--name", "before", "--", "true")
    state = yard.env["RUNYARD_HOME"]
    writer = yard.rig.start("login", sys.executable, "-c", WRITE, state, env=yard.env)
    assert writer.stdout is not None
    assert writer.stdout.readline() == "written\n"
    with yard.rig.cut_off("login", files=True):
        for number in range(3):
            yard.type("n1", "run", "--name", f"after-{number}", "--", "true")
    wait_until(lambda: yard.servers() == ["n1"])
    writer.communicate()
    shown = yard.type("n1", "runs")
    assert all(f"after-{number}" in shown for number in range(3)), shown
    yard.type("n1", "server", "stop")
    with closing(sqlite3.connect(yard.home.database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        names = {name for (name,) in connection.execute("SELECT name FROM runs")}
    assert names == {"before", "after-0", "after-1", "after-2"}
