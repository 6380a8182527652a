"""The agents of sweeps: list them, let one finish and go, or add one on this machine.

  runyard agents                       those at work, and what they have
  runyard agents drain AGENT           it begins no more, and goes when what it runs has finished
  runyard agents add SWEEP -j 2        one more on this machine, in the background
  runyard agents add SWEEP --agents 8 --on slurm --gpus 1      eight more, as an array of jobs
  runyard agents add SWEEP --agents 4 --on slurm --form nodes  one on each node of one job

On Slurm they get what the sweep's last job asked for, but for what is said here.
An agent takes trials of its sweep until none is left or its time is up; SWEEP is an id, a name, or
a part of either.
"""

from __future__ import annotations

import argparse
import time
from functools import partial

from runyard.actions.naming import find_sweep_to_run
from runyard.actions.sweeping import agents as working
from runyard.actions.sweeping.elsewhere import sweep_elsewhere
from runyard.actions.watching.figures_text import usage_text
from runyard.cli.completers import complete_sweep
from runyard.cli.connect import server
from runyard.cli.option_groups import add_slot_arguments, project_options, read_slots
from runyard.cli.output import Columns, ago, duration, print_list, say, show
from runyard.cli.parser import add, flag, positive
from runyard.cli.slurm_options import add_slurm_arguments, refuse_slurm_options
from runyard.cli.starting.submission_view import send
from runyard.errors import UsageError
from runyard.home import locate
from runyard.schedulers.choice import has_queue
from runyard.shapes.sweeps import Sweep

_COLUMNS: Columns = {
    "AGENT": lambda agent: str(agent["key"]),
    "SWEEP": "sweep",
    "KIND": "kind",
    "HOST": "host",
    "PID": lambda agent: str(agent["pid"] or "-"),
    "AT WORK": lambda agent: f"{agent['running']}/{agent['slots']}",
    "AGE": lambda agent: duration(max(0.0, time.time() - agent["created_at"])),
    "HEARD": lambda agent: ago(agent["heard_at"]),
    "USES": lambda agent: usage_text(agent["usage"]) or "-",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "runyard agents [options] [ACTION] [AGENT|SWEEP]"
    add(parser, "action ACTION", "list (the default), drain or add; send-held: submit what a limit "
        "kept out",
        nargs="?", default="list", choices=("list", "drain", "add", "send-held"))  # fmt: skip
    add(parser, "which AGENT|SWEEP", "with drain: an agent's number; with add: a sweep (default: "
        "the newest)", nargs="?", completer=complete_sweep)  # fmt: skip
    add_slot_arguments(parser)
    add(parser, "--agents N", "with add: how many (default 1; on slurm, as many as trials are "
        "left)", type=positive)  # fmt: skip
    add(parser, "--server URL|cloud", "with add: for ENTITY/PROJECT/SWEEP at this server, by W&B's "
        "protocol (default: WANDB_BASE_URL where it is not ours)")  # fmt: skip
    flag(parser, "--dry-run", "with add: show what would be sent")
    flag(parser, "--json", "print JSON")
    add(parser, "--code", "with add on slurm: run the code with which the sweep began, or today's "
        "(default then)", choices=("then", "now"), default="then")  # fmt: skip
    add_slurm_arguments(parser)


def run(args: argparse.Namespace) -> int:
    refuse_slurm_options(args)
    if args.action == "drain" and not (args.which or "").isdecimal():
        raise UsageError("runyard agents drain: which agent?", mend="runyard agents drain 3")
    if args.action == "list" and args.which is not None:
        raise UsageError("runyard agents list takes no name", mend="runyard agents")
    if args.action == "add":
        return _add(args)
    api = server()
    if args.action == "send-held":
        from runyard.actions.submitting.submission import send_held_agents

        sent = send_held_agents(api, locate())
        say(f"{sent} agents that were held back are submitted" if sent else "nothing was sent")
        return 0
    if args.action == "drain":
        agent = working.drain_agent(api, int(args.which))
        running = f"its {agent['running']} trials have finished"
        say(f"agent {agent['key']} begins no more, and goes when {running}")
        return 0
    agents = [{"sweep": sweep["id"], **agent} for sweep, agent in working.list_agents(api)]
    empty = "no agent is at work; `runyard agents add SWEEP` starts one"
    print_list(_COLUMNS, agents, empty, as_json=args.json)
    return 0


def _add(args: argparse.Namespace) -> int:
    elsewhere = sweep_elsewhere(args.server, args.which or "", show)
    if elsewhere is not None:
        working.add_agents_elsewhere(elsewhere, read_slots(args), args.agents or 1, show)
        return 0
    if has_queue(args.on):
        from runyard.cli.resource_flags import given_flags

        named = args.which or given_flags(args)["sweep_id"]
        return add_on_slurm(args, find_sweep_to_run(server(), named))
    working.add_agents(
        _request(args, find_sweep_to_run(server(), args.which), count=args.agents or 1), show
    )
    return 0


def add_on_slurm(args: argparse.Namespace, sweep: Sweep) -> int:
    """Also for commands that join a sweep with agents on the cluster."""
    return send(args, partial(working.add_agents_on_cluster, _request(args, sweep)))


def _request(args: argparse.Namespace, sweep: Sweep, count: int = 1) -> working.AgentsRequest:
    with_code_of_then = getattr(args, "code", "then") == "then"
    return working.AgentsRequest(
        sweep, read_slots(args), project_options(args), count, with_code_of_then
    )
