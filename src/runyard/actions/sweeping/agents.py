"""The agents of sweeps: which are at work, more of them here or on the cluster, and one less."""

from __future__ import annotations

import os
import signal
import socket
from dataclasses import dataclass
from pathlib import Path

from runyard.actions.connect import open_server
from runyard.actions.events import Notice, Notify
from runyard.actions.submitting.last_request import with_last_request
from runyard.actions.submitting.planning import SubmissionRequest, plan_submission
from runyard.actions.submitting.submission import ClusterOptions, Outcome, submit_for
from runyard.actions.sweeping.agent_process import (
    AgentStarted,
    start_agent,
    start_in_background,
    working_folder,
)
from runyard.actions.sweeping.elsewhere import SweepElsewhere, elsewhere_command
from runyard.actions.sweeping.slots import Slots
from runyard.actions.tracking import ProjectOptions, agent_variables
from runyard.client.api import Api
from runyard.client.sweeps import OPEN_STATES
from runyard.errors import NotFoundError, UsageError
from runyard.home import locate
from runyard.shapes.sweeps import Sweep, SweepAgent
from runyard.vocabulary import ENDED_STATES


@dataclass(frozen=True)
class AgentsRequest:
    """More agents for a sweep that is there."""

    sweep: Sweep
    slots: Slots
    options: ProjectOptions
    count: int = 1
    """So many on this machine; on the cluster the options say it."""
    with_code_of_then: bool = True
    """On the cluster: the code with which the sweep began, and not today's."""


def list_agents(api: Api) -> list[tuple[Sweep, SweepAgent]]:
    return [(sweep, agent) for sweep in api.sweeps.sweeps() for agent in sweep["agents"]]


def drain_agent(api: Api, key: int) -> SweepAgent:
    """Let an agent of this machine begin no more, and go when what it runs has finished."""
    known = {agent["key"]: agent for _, agent in list_agents(api)}
    agent = known.get(key)
    if agent is None:
        there = ", ".join(map(str, known)) or "none"
        raise NotFoundError(f"there is no agent {key} at work", mend=f"there are: {there}")
    pid = agent["pid"]
    if agent["kind"] != "own" or agent["host"] != socket.gethostname() or pid is None:
        raise UsageError(
            f"agent {key} is not one of runyard's on this machine ({agent['host']})",
            mend=f"log in to {agent['host']} and drain it there; or pause its sweep",
        )
    if not _is_agent(pid):
        raise NotFoundError(
            f"agent {key} is gone (process {pid})",
            mend="what it had goes to others when its lease has run out, within a minute or so",
        )
    os.kill(pid, signal.SIGUSR1)
    return agent


def _is_agent(pid: int) -> bool:
    """The number may be somebody else's by now."""
    try:
        return b"runyard.node.agent" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def add_agents(request: AgentsRequest, notify: Notify) -> list[AgentStarted]:
    """On this machine, in the background."""
    sweep = request.sweep
    refuse_ended(sweep)
    variables = agent_variables(request.options, Path(sweep["folder"] or "."), notify)
    started = []
    for _ in range(request.count):
        started.append(start_agent(sweep, request.slots, variables))
        _tell_started(started[-1], sweep["id"], request.slots.of_sweep(sweep), notify)
    return started


def add_agents_elsewhere(
    sweep: SweepElsewhere, slots: Slots, count: int, notify: Notify
) -> list[AgentStarted]:
    """On this machine, for a sweep at a server that is not ours."""
    name, started = sweep.path.rpartition("/")[2], []
    for _ in range(count):
        words = elsewhere_command(sweep, slots=slots)
        started.append(start_in_background(words, name, str(Path.cwd()), {}))
        _tell_started(started[-1], name, slots, notify)
    return started


def _tell_started(agent: AgentStarted, sweep: str, slots: Slots, notify: Notify) -> None:
    notify(Notice(f"an agent works on {sweep}, {slots}: process {agent.pid}"))
    notify(Notice(f"what it says is in {agent.log}"))


def add_agents_on_cluster(
    request: AgentsRequest, cluster: ClusterOptions, notify: Notify
) -> Outcome:
    """As jobs, which ask for what the sweep's last job asked for, where the options say nothing."""
    sweep, flags = request.sweep, request.options.flags
    refuse_ended(sweep)
    api = open_server(notify, quiet=True)
    jobs = api.jobs.jobs(sweep=sweep["key"], limit=1)
    if jobs:
        flags = with_last_request(flags, jobs[0]["asked"])
        notify(Notice(f"what is not said here is asked for as by job {jobs[0]['job_id']}"))
    folder = Path(working_folder(sweep["folder"]))
    left = None
    if sweep["expected"] is not None:
        left = max(
            1, sweep["expected"] - sum(sweep["counts"].get(state, 0) for state in ENDED_STATES)
        )
    code = None
    if cluster.copies_code and request.with_code_of_then:
        from runyard.actions.submitting.sweep_code import code_for_more

        code = code_for_more(api, locate(), sweep, folder, notify)
    submission = plan_submission(
        SubmissionRequest(
            "agents", folder, left, flags, request.slots.count or 1, cluster, code=code
        ),
        notify,
    )
    return submit_for(submission, lambda: sweep, cluster, notify, is_new=False)


def refuse_ended(sweep: Sweep) -> None:
    if sweep["state"] not in OPEN_STATES:
        raise UsageError(
            f"sweep {sweep['id']} has ended: {sweep['state']}",
            mend=f"`runyard retry {sweep['id']}` runs what failed",
        )
