"""What agents do for the whole of their submission."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from runyard.node.agent.__main__ import Agent
from runyard.node.agent.draining import Draining
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


@pytest.mark.parametrize("terminated", [False, True])
@pytest.mark.parametrize("for_nothing", [False, True])
@pytest.mark.parametrize("trouble", [None, "the server answers with 503"])
def test_an_agent_in_trouble_leaves_its_work_to_the_next_link(
    trouble: str | None, for_nothing: bool, terminated: bool
) -> None:
    """Unless every trial is too long for its job, or somebody wants the job to end."""

    def after(_seconds: float, _call: object) -> None:
        pass

    work: Any = SimpleNamespace(
        agent="9", at_work=list, gave_up=False, is_draining=False, leaves_work=False,
        loop=SimpleNamespace(after=after), end=SimpleNamespace(is_pushed_out=False),
    )  # fmt: skip
    draining = Draining(work, is_chained=True)
    if terminated:
        draining._on_signal(signal.SIGTERM)
    if trouble is not None:
        draining.fail(trouble)
    agent = SimpleNamespace(_work=work, _draining=draining, is_for_nothing=for_nothing)
    leaves_work: Any = Agent.leaves_work
    goes_on = trouble is not None and not for_nothing and not terminated
    assert leaves_work.fget(agent) is goes_on
