"""How the tests begin ranks: at another port where theirs is taken, and never without a word."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import wait_until
from tests.train import ranks
from tests.train.ranks import Ended

# The first rank 0 says what torch says when another program has the port by then.
_TAKEN_AT_FIRST = """
import os, pathlib, socket, sys, time
rank, port = os.environ["RANK"], int(os.environ["MASTER_PORT"])
first = pathlib.Path(sys.argv[1])
if rank == "0" and not first.exists():
    first.write_text(str(port))
    sys.exit("The server socket has failed to listen, code: -98, name: EADDRINUSE")
while not first.exists():
    time.sleep(0.02)
if int(first.read_text()) == port:
    time.sleep(10_000)
print(rank, "meets at another port")
"""
_HANGS = """
import os, pathlib, sys, time
print("rank", os.environ["RANK"], "waits", file=sys.stderr, flush=True)
pathlib.Path(sys.argv[1], os.environ["RANK"]).touch()
time.sleep(10_000)
"""


def test_ranks_whose_port_was_taken_meet_at_another_one(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(_TAKEN_AT_FIRST)
    ended = ranks.run_ranks(Path(sys.executable), program, [str(tmp_path / "first")])
    assert [(rank.returncode, rank.stdout) for rank in ended] == [
        (0, "0 meets at another port\n"), (0, "1 meets at another port\n"),
    ]  # fmt: skip


def test_of_ranks_that_hang_all_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def give_up(rank: subprocess.Popen[str]) -> Ended:
        wait_until(lambda: (tmp_path / "0").exists() and (tmp_path / "1").exists())
        raise subprocess.TimeoutExpired(rank.args, ranks.LONGEST)

    monkeypatch.setattr(ranks, "_end", give_up)
    program = tmp_path / "program.py"
    program.write_text(_HANGS)
    with pytest.raises(AssertionError, match=r"(?s)rank 0 waits.*the other rank.*rank 1 waits"):
        ranks.run_ranks(Path(sys.executable), program, [str(tmp_path)])
