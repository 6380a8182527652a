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
import signal
import socket
import subprocess
import time
from pathlib import Path

from runyard.actions.naming import find_sweep
from runyard.actions.tracking import agent_variables
from runyard.cli.asked_before import keep_asked
from runyard.cli.attempt_usage import usage_text
from runyard.cli.completers import complete_sweep
from runyard.cli.connect import server
from runyard.cli.on_slurm import (
    nothing_was_submitted,
    plan_submission,
    send_held_agents,
    send_or_undo,
)
from runyard.cli.output import ago, duration, print_json, print_table, say, show
from runyard.cli.parser import positive
from runyard.cli.project_options import project_options
from runyard.cli.slots import Slots, add_slot_arguments, read_slots
from runyard.cli.slurm_options import SLURM, add_slurm_arguments, refuse_slurm_options
from runyard.client.api import Api
from runyard.client.sweeps import Sweep, SweepAgent
from runyard.errors import NotFoundError, UsageError
from runyard.home import locate

_OPEN = ("running", "paused")


def add_arguments(parser: argparse.ArgumentParser) -> None:
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
        sent = send_held_agents(api, locate())
        say(f"{sent} agents that were held back are submitted" if sent else "nothing was sent")
        return 0
    if args.action == "drain":
        return _drain(api, int(args.which))
    found = _agents(api)
    if args.json:
        print_json([{"sweep": sweep["id"], **agent} for sweep, agent in found])
    elif not found:
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
                for sweep, agent in found
            ),
        )
    return 0


def _agents(api: Api) -> list[tuple[Sweep, SweepAgent]]:
    return [(sweep, agent) for sweep in api.sweeps.sweeps() for agent in sweep["agents"]]


def _drain(api: Api, key: int) -> int:
    known = {agent["key"]: agent for _, agent in _agents(api)}
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
    say(f"agent {key} begins no more, and goes when its {agent['running']} trials have finished")
    return 0


def _is_agent(pid: int) -> bool:
    """The number may be somebody else's by now."""
    try:
        return b"runyard.node.agent" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _add(args: argparse.Namespace) -> int:
    if args.server is not None or "/" in (args.which or ""):
        from runyard.cli.elsewhere import server_elsewhere

        url = server_elsewhere(args.server, locate(), os.environ)
        if url is not None:
            return _add_elsewhere(args, url)
    if args.on == SLURM:
        from runyard.cli.resource_flags import given_flags

        named = args.which or given_flags(args)["sweep_id"]
        return add_on_slurm(args, find_sweep(server(), named))
    found = find_sweep(server(), args.which)
    refuse_ended(found)
    os.environ.update(agent_variables(project_options(args), Path(found["folder"] or "."), show))
    for _ in range(args.agents or 1):
        _start_here(found, read_slots(args).of_sweep(found))
    return 0


def _add_elsewhere(args: argparse.Namespace, url: str) -> int:
    from runyard.cli.elsewhere import agent_words, find_elsewhere

    found = find_elsewhere(url, args.which or "")
    for _ in range(args.agents or 1):
        words = agent_words(found, slots=read_slots(args))
        _start(words, found.path.rpartition("/")[2], read_slots(args), str(Path.cwd()))
    return 0


def add_on_slurm(args: argparse.Namespace, found: Sweep) -> int:
    """More agents for a sweep, as jobs of the cluster."""
    from runyard.cli.sweep_watch import working_folder

    refuse_ended(found)
    jobs = server(quiet=True).jobs.jobs(sweep=found["key"], limit=1)
    if jobs:
        keep_asked(args, jobs[0]["asked"])
        say(f"what is not said here is asked for as by job {jobs[0]['job_id']}")
    folder = Path(working_folder(found["folder"]))
    waits = found["expected"]
    left = None if waits is None else max(1, waits - _done(found))
    code = None
    if not args.no_snapshot and getattr(args, "code", "then") == "then":
        from runyard.cli.sweep_code import code_for_more

        code = code_for_more(server(quiet=True), locate(), found, folder)
    submission = plan_submission(
        args, kind="agents", folder=folder, trials=left, slots=args.slots or 1, code=code
    )
    if args.dry_run:
        submission.preview()
        return 0
    confirmed = submission.confirmed(args)
    if confirmed is None:
        return nothing_was_submitted()
    return send_or_undo(confirmed, found, as_json=args.json, is_new=False)


def _done(found: Sweep) -> int:
    return sum(found["counts"].get(state, 0) for state in ("finished", "failed", "stopped"))


def refuse_ended(found: Sweep) -> None:
    if found["state"] not in _OPEN:
        raise UsageError(
            f"sweep {found['id']} has ended: {found['state']}",
            mend=f"`runyard retry {found['id']}` runs what failed",
        )


def _start_here(found: Sweep, slots: Slots) -> None:
    from runyard.cli.sweep_watch import agent_command, working_folder

    folder = working_folder(found["folder"])
    words = agent_command(
        found["key"], slots=slots, count=None, folder=folder, leash=None, quiet=False
    )
    _start(words, found["id"], slots, folder)


def _start(words: list[str], sweep: str, slots: Slots, folder: str) -> None:
    """An agent in the background, which outlives the terminal."""
    home = locate()
    log = home.path / "agents" / f"{sweep}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with log.open("ab") as output:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            cwd=folder,
            env={**os.environ, "RUNYARD_HOME": str(home.path)},
        )
    say(f"an agent works on {sweep}, {slots}: process {process.pid}")
    say(f"what it says is in {log}")
