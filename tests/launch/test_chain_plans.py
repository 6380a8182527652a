"""Chains as plans: which jobs they become, and which of these waits for which."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from runyard.actions.watching.chains import ChainState
from runyard.cli.watching.job_view import chain_lines
from runyard.clusters.load import load_profile
from runyard.clusters.profile import Elasticity, Profile
from runyard.config.request import Agents
from runyard.launch import script_agents
from runyard.launch.plan import Plan
from runyard.launch.script import script
from runyard.launch.submitting import Sender, Sheet, follows, parts_of
from runyard.schedulers.slurm import sending
from runyard.schedulers.slurm.commands import Answer
from runyard.schedulers.slurm.scheduler import Slurm
from tests.launch.planning import option, planned, request


def by(chain: str, *, requeue: bool = True) -> Profile:
    return replace(load_profile("generic"), elasticity=Elasticity(chain=chain, requeue=requeue))


def sent(made: Plan, monkeypatch: pytest.MonkeyPatch, size: int = 1001) -> list[tuple[str, int]]:
    """What sbatch is called with: the dependency, and the tasks; ids are 100, 101, ..."""
    calls: list[tuple[str, int]] = []
    parts = iter(parts_of(made, size))

    def ask(words: Sequence[str], **_: object) -> Answer:
        after = [word for word in words if word.startswith("--dependency=")]
        calls.append((after[0] if after else "", next(parts).count))
        return Answer(0, f"{99 + len(calls)}\n", "")

    monkeypatch.setattr(sending, "ask", ask)
    sheet = Sheet(made.places.job, made.name, made.form, lambda _part: "", follows=follows(made))
    Sender(sheet, Slurm({})).send(parts_of(made, size))
    return calls


def test_agents_side_by_side_each_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    made = planned(trials=3, agents=Agents(chain=4, count=3))
    assert (made.form, made.agents, made.at_once) == ("array", 12, 3)
    assert "#SBATCH --array=1-12%3" in script(made)
    assert sent(made, monkeypatch) == [("", 12)]
    fewer = planned(trials=30, agents=Agents(chain=4, count=2))
    assert (fewer.agents, fewer.at_once) == (8, 2)


def test_without_a_number_of_agents_one_link_runs_at_a_time() -> None:
    made = planned(trials=2, agents=Agents(chain=12))
    assert (made.form, made.agents, made.at_once) == ("array", 12, 1)
    assert "#SBATCH --array=1-12%1" in script(made)


def test_a_chain_too_long_for_one_array_goes_on_in_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = planned(trials=1, agents=Agents(chain=30))
    assert sent(made, monkeypatch, size=13) == [
        ("", 12), ("--dependency=afterany:100", 12), ("--dependency=afterany:101", 6),
    ]  # fmt: skip


def test_by_dependency_each_job_waits_for_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = planned(request(by("dependency"), agents=Agents(chain=3)), trials=1)
    assert (alone.form, alone.agents) == ("jobs", 3)
    one_by_one = [("", 1), ("--dependency=afterany:100", 1), ("--dependency=afterany:101", 1)]
    assert sent(alone, monkeypatch) == one_by_one
    wide = planned(request(by("dependency"), agents=Agents(chain=2, count=3)), trials=3)
    assert sent(wide, monkeypatch) == [("", 3), ("--dependency=afterany:100", 3)]
    jobs = planned(agents=Agents(chain=2, form="jobs", count=2))
    assert sent(jobs, monkeypatch) == [
        ("", 1), ("", 1), ("--dependency=afterany:100", 1), ("--dependency=afterany:101", 1),
    ]  # fmt: skip
    nodes = planned(agents=Agents(chain=2, form="nodes", count=4))
    assert option(nodes, "nodes") == "4"
    assert sent(nodes, monkeypatch) == [("", 4), ("--dependency=afterany:100", 4)]


def test_links_that_were_held_back_wait_for_those_that_were_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = planned(request(by("dependency"), agents=Agents(chain=4)), trials=1)
    words: list[str] = []

    def ask(given: Sequence[str], **_: object) -> Answer:
        words.extend(given)
        return Answer(0, "12\n", "")

    monkeypatch.setattr(sending, "ask", ask)
    sheet = Sheet(made.places.job, made.name, made.form, lambda _part: "", follows=follows(made))
    Sender(sheet, Slurm({}), before=["10", "11"]).send(parts_of(made, 1001)[2:3])
    assert "--dependency=afterany:11" in words


def test_by_requeue_one_job_goes_back_as_often_as_it_has_links() -> None:
    made = planned(request(by("requeue"), agents=Agents(chain=4)), trials=1)
    text = script(made)
    assert (made.form, made.agents, follows(made)) == ("jobs", 1, 0)
    assert "#SBATCH --requeue" in text
    assert '"${SLURM_RESTART_COUNT:-0}" -lt 3' in text
    assert "scontrol requeue" not in script(planned(trials=1, agents=Agents(chain=4)))
    # Not where jobs may not go back, nor where several agents share a job.
    never = planned(request(by("requeue", requeue=False), agents=Agents(chain=4)), trials=1)
    over = planned(request(by("requeue"), agents=Agents(chain=4, form="nodes", count=2)))
    for other in (never, over):
        assert other.chain is not None
        assert other.chain.form == "dependency"


NAMED = 'while [ "$1" != --ended ]; do shift; done; '
# What becomes of the agent, and whether the job goes back to the queue at its first link.
ENDS = {
    "kill -9 $$": True,
    "exit 1": True,
    NAMED + "echo 0 left >$2": True,
    NAMED + "echo 0 >$2": False,
    NAMED + "echo 1 >$2": False,
    "kill -TERM $PPID; kill -9 $$": False,  # Somebody ends the job.
}


@pytest.mark.parametrize("restarts", [0, 3])
@pytest.mark.parametrize("agent", ENDS)
def test_by_requeue_an_agent_that_was_killed_leaves_its_work_to_the_next_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agent: str, restarts: int
) -> None:
    made = planned(request(by("requeue"), agents=Agents(chain=4)), trials=1)
    words = f"bash -c {shlex.quote(agent)} agent"
    monkeypatch.setattr(script_agents, "_agent_words", lambda _plan: words)
    end = script_agents.clean_up(made)
    again = end[next(i for i, line in enumerate(end) if '"$left" = left' in line) :]
    begin = ['scontrol() { echo "$@"; }', "job=/nowhere"]
    done = subprocess.run(
        ["bash", "-c", "\n".join([*begin, *script_agents.one_agent(made), *again])],
        env={
            "PATH": os.defpath,
            "SLURM_TMPDIR": str(tmp_path),
            "SLURM_JOB_ID": "7",
            "SLURM_RESTART_COUNT": str(restarts),
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == ("requeue 7\n" if ENDS[agent] and restarts < 3 else ""), done.stderr


def state(over: int, at_work: int, links: int = 6) -> ChainState:
    return ChainState("array", links, 1, over, at_work, links - over - at_work, 3600.0)


def test_a_chain_in_one_line() -> None:
    (line,) = chain_lines(state(over=1, at_work=1), is_open=True)
    assert line[0] == "  chain: link 2 of 6 is at work; 4 more to come, up to 4 h 0 min"
    (line,) = chain_lines(state(over=1, at_work=0), is_open=True)
    assert line[0] == "  chain: link 2 of 6 is next; 4 more to come, up to 4 h 0 min"
    (line,) = chain_lines(state(over=6, at_work=0), is_open=True)
    assert "all 6 links are over, and there is work left" in line[0]
    assert chain_lines(state(over=1, at_work=1), is_open=False) == []
