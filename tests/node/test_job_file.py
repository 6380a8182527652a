"""What agents do for the whole of their submission."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runyard.node.agent.job_file import cancel_links, write_end


def test_of_agents_side_by_side_one_cancels_what_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """squeue and scancel are doubles that count; at first the controller does not answer."""
    for name, line in (("squeue", f"echo '12|{tmp_path}'"), ("scancel", "true")):
        file = tmp_path / "bin" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(
            f"#!/bin/sh\necho {name} >> {tmp_path}/calls\n[ -e {tmp_path}/up ] && {line}\n"
        )
        file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_JOB_ID", "11")
    lines: list[str] = []
    cancel_links(str(tmp_path / "job.json"), lines.append)
    assert "could not be cancelled" in lines[-1]
    (tmp_path / "up").touch()
    for _ in range(3):
        cancel_links(str(tmp_path / "job.json"), lines.append)
    assert lines[1:] == ["the links of this chain that have not begun are cancelled"]
    assert (tmp_path / "calls").read_text().split() == ["squeue", "squeue", "scancel"]


@pytest.mark.parametrize(
    ("leaves_work", "stays", "line"),
    [(False, 0.0, "3"), (True, 0.0, "3 left"), (False, 42.4, "3 stays 42")],
)
def test_what_the_jobs_script_is_told_of_the_end(
    tmp_path: Path, leaves_work: bool, stays: float, line: str
) -> None:
    write_end(str(tmp_path / "ended"), 3, leaves_work=leaves_work, stays=stays)
    assert (tmp_path / "ended").read_text() == f"{line}\n"
