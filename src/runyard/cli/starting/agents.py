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
import os
import time

from runyard.actions.naming import find_sweep
from runyard.actions.sweeping.agents import (
    AgentsRequest,
    add_agents,
    add_agents_elsewhere,
    add_agents_on_cluster,
    drain_agent,
    list_agents,
)
from runyard.cli.completers import complete_sweep
from runyard.cli.connect import server
from runyard.cli.output import ago, duration, print_json, print_table, say, show
from runyard.cli.parser import positive
from runyard.cli.project_options import project_options
from runyard.cli.slurm_options import add_slurm_arguments, refuse_slurm_options
from runyard.cli.starting.slots import add_slot_arguments, read_slots
from runyard.cli.starting.submission_view import cluster_options, show_submission, tell_outcome
from runyard.cli.watching.job_view import usage_text
from runyard.client.sweeps import Sweep
from runyard.errors import UsageError
from runyard.home import locate
from runyard.schedulers.choice import has_queue


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "runyard agents [options] [ACTION] [AGENT|SWEEP]"
    parser.add_argument(
        "action", nargs="?", default="list", choices=("list", "drain", "add", "send-held"),
        metavar="ACTION",
        help="list (the default), drain or add; send-held: submit what a limit kept out",
    )  # fmt: skip
    which = parser.add_argument(
        "which", nargs="?", metavar="AGENT|SWEEP",
        help="with drain: an agent's number; with add: a sweep (default: the newest)",
    )  # fmt: skip
    which.completer = complete_sweep  # type: ignore[attr-defined]
    add_slot_arguments(parser)
    parser.add_argument(
        "--agents", type=positive, metavar="N",
        help="with add: how many (default 1; on slurm, as many as trials are left)",
    )  # fmt: skip
    parser.add_argument("--server", metavar="URL|cloud",
                        help="with add: for ENTITY/PROJECT/SWEEP at this server, by W&B's "
                        "protocol (default: WANDB_BASE_URL where it is not ours)")  # fmt: skip
    parser.add_argument("--dry-run", action="store_true", help="with add: show what would be sent")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--code", choices=("then", "now"), default="then",
                        help="with add on slurm: run the code with which the sweep began, or "
                        "today's (default then)")  # fmt: skip
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
        agent = drain_agent(api, int(args.which))
        running = f"its {agent['running']} trials have finished"
        say(f"agent {agent['key']} begins no more, and goes when {running}")
        return 0
    agents = list_agents(api)
    if args.json:
        print_json([{"sweep": sweep["id"], **agent} for sweep, agent in agents])
    elif not agents:
        say("no agent is at work; `runyard agents add SWEEP` starts one")
    else:
        print_table(
            ("AGENT", "SWEEP", "KIND", "HOST", "PID", "AT WORK", "AGE", "HEARD", "USES"),
            (
                (
                    str(agent["key"]),
                    sweep["id"],
                    agent["kind"],
                    agent["host"],
                    str(agent["pid"] or "-"),
                    f"{agent['running']}/{agent['slots']}",
                    duration(max(0.0, time.time() - agent["created_at"])),
                    ago(agent["heard_at"]),
                    usage_text(agent["usage"]) or "-",
                )
                for sweep, agent in agents
            ),
        )
    return 0


def _add(args: argparse.Namespace) -> int:
    if args.server is not None or "/" in (args.which or ""):
        from runyard.actions.sweeping.elsewhere import find_elsewhere, server_elsewhere

        url = server_elsewhere(args.server, locate(), os.environ)
        if url is not None:
            elsewhere = find_elsewhere(url, args.which or "", show)
            add_agents_elsewhere(elsewhere, read_slots(args), args.agents or 1, show)
            return 0
    if has_queue(args.on):
        from runyard.cli.resource_flags import given_flags

        named = args.which or given_flags(args)["sweep_id"]
        return add_on_slurm(args, find_sweep(server(), named))
    add_agents(_request(args, find_sweep(server(), args.which), count=args.agents or 1), show)
    return 0


def add_on_slurm(args: argparse.Namespace, sweep: Sweep) -> int:
    """Also for commands that join a sweep with agents on the cluster."""
    outcome = add_agents_on_cluster(_request(args, sweep), cluster_options(args), show_submission)
    return tell_outcome(outcome, as_json=args.json)


def _request(args: argparse.Namespace, sweep: Sweep, count: int = 1) -> AgentsRequest:
    with_code_of_then = getattr(args, "code", "then") == "then"
    return AgentsRequest(sweep, read_slots(args), project_options(args), count, with_code_of_then)
