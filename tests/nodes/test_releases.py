"""What a job and its figures look like on newer releases of Slurm, with control groups on."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator

import pytest

from tests.conftest import wait_until
from tests.environments import Missing, skip_or_fail
from tests.slurm.releases import ensure_release

from .config import Plan
from .conftest import open_rig
from .yard import Yard, open_yard

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(
        os.environ.get("RUNYARD_ALL_NODES") != "1",
        reason="RUNYARD_ALL_NODES=1: another Debian is made for each release",
    ),
]
SCRIPT = """\
#!/bin/sh
{python} -c 'import json
from runyard.schedulers.inside import this_job
job = this_job()
print(json.dumps([job.step_id, job.end is not None]), flush=True)'
while :; do :; done
"""
ASK = """
import json
from runyard.schedulers.slurm.live_usage import running_tasks
print(json.dumps([[task.gpus, task.cpu_seconds] for task in running_tasks()]))
"""


@pytest.fixture(params=["24.11", "26.05"])
def yard(request: pytest.FixtureRequest) -> Iterator[Yard]:
    """On one node with that release."""
    try:
        system = ensure_release(request.param)
    except Missing as missing:
        skip_or_fail(str(missing))
    for rig in open_rig(Plan(nodes=1, system=system)):
        with open_yard(rig, "release") as opened:
            yield opened


def test_a_script_is_no_step_and_its_figures_are_its_own(yard: Yard) -> None:
    rig = yard.rig
    yard.write("job.sh", SCRIPT.format(python=sys.executable))
    words = ("sbatch", "--gres=gpu:1", f"--output={yard.folder}/said", "--time=5", "job.sh")
    rig.run("login", *words, cwd=yard.folder / "project", env=yard.env)
    said = rig.disk / yard.name / "said"
    wait_until(lambda: said.exists() and said.read_text())
    assert json.loads(said.read_text()) == [None, True]

    def figures() -> list[tuple[str, float]]:
        shown = rig.run("login", sys.executable, "-c", ASK, env=yard.env)
        return [(gpus, seconds) for gpus, seconds in json.loads(shown)]

    # Slurm looks every 5 s.
    wait_until(lambda: figures()[0][1] > 1)
    ((gpus, seconds),) = figures()
    assert gpus == "gpu:1"
    assert seconds < 86400
