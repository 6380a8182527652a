"""The steward of a node, told that the job is about to be cut."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

from tests.node.terminals import until

STAYS = """\
import os, sys
from runyard.node.data import steward
steward._AFTER_TERM_SECONDS = 2.0
sys.exit(steward.main([sys.argv[1], "stay", ""]))
"""


def test_after_term_results_are_saved_at_once_and_those_of_the_last_seconds_too(
    tmp_path: Path,
) -> None:
    disk, scratch, job = tmp_path / "disk", tmp_path / "scratch", tmp_path / "job.json"
    (disk / "out").mkdir(parents=True)
    (disk / "out" / "first").touch()
    job.write_text(json.dumps({"staging": {"results": ["out"]}}))
    environ = {"SLURM_TMPDIR": str(disk), "scratch_dir": str(scratch), "SLURM_JOB_ID": "7"}
    words = [sys.executable, "-c", STAYS, str(job)]
    with subprocess.Popen(words, env=environ, stdout=subprocess.PIPE, text=True) as stays:
        assert stays.stdout is not None
        assert stays.stdout.readline() == "runyard-steward-ready\n"
        stays.send_signal(signal.SIGTERM)
        saved = scratch / "results" / "7" / "out"
        until((saved / "first").exists, lambda: str(list(scratch.rglob("*"))))
        (disk / "out" / "second").touch()
        assert stays.wait(30) == 0
    assert (saved / "second").exists()
