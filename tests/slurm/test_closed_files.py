"""What a job leaves behind is closed to others; the group has what the user's umask leaves it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.slurm.cluster import SlurmCluster
from tests.slurm.yard import Yard, open_yard

pytestmark = pytest.mark.slurm

PROGRAM = "import os; open('result.txt', 'w').write('x'); print('said something')\n"


@pytest.fixture
def yard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slurm_cluster: SlurmCluster
) -> Iterator[Yard]:
    with open_yard(tmp_path / "yard", monkeypatch, slurm_cluster) as opened:
        yield opened


@pytest.fixture
def set_umask() -> Iterator[Callable[[int], object]]:
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


@pytest.mark.parametrize(
    ("umask", "is_there"), [(0o022, False), (0o002, True)], ids=["new folder", "open folder"]
)
def test_others_read_nothing_that_a_job_wrote(
    yard: Yard, set_umask: Callable[[int], object], umask: int, is_there: bool, tmp_path: Path
) -> None:
    set_umask(umask)
    scratch = tmp_path / "scratch"
    outputs = scratch / yard.project.name / "hpc_outputs"
    scratch.mkdir()
    if is_there:
        # As its owner wants it to be: nobody changes that, and the logs in it are closed.
        outputs.mkdir(parents=True)
    yard.write("train.py", PROGRAM)
    yard.type("submit", "--json", "--", "python", "train.py", env={"SCRATCH": str(scratch)})
    (job,) = yard.api.jobs.jobs()
    yard.cluster.wait_for(job["job_id"], "COMPLETED")
    (log,) = outputs.iterdir()
    assert "said something" in log.read_text()
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in outputs.parent.rglob("*")}
    open_ones = [path for path, mode in modes.items() if mode & 0o007]
    assert open_ones == ([outputs] if is_there else [])
    # The group may what the user's own umask lets it.
    assert modes[log] == 0o660 & ~umask
    assert modes[outputs] == (0o777 if is_there else 0o770) & ~umask
    assert stat.S_IMODE((yard.project / "result.txt").stat().st_mode) == 0o660 & ~umask
