"""The agents of sweeps: list them, let one finish and go, or add one on this machine.

runyard agents                       those at work, and what they have
runyard agents drain AGENT           it begins no more, and goes when what it runs has finished
runyard agents add SWEEP -j 2        one more on this machine, in the background
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

from runyard.cli.connect import complete_sweep, server
from runyard.cli.output import ago, duration, print_json, print_table, say
from runyard.cli.slots import add_slot_arguments, read_slots
from runyard.cli.sweeps import find_sweep
from runyard.cli.usage import usage_text
from runyard.client.api import Api
from runyard.client.sweeps import Sweep, SweepAgent
from runyard.errors import NotFoundError, UsageError
from runyard.home import locate

_OPEN = ("running", "paused")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action", nargs="?", default="list", choices=("list", "drain", "add"), metavar="ACTION",
        help="list (the default), drain or add",
    )  # fmt: skip
    which = parser.add_argument(
        "which", nargs="?", metavar="AGENT|SWEEP",
        help="with drain: an agent's number; with add: a sweep (default: the newest)",
    )  # fmt: skip
    which.completer = complete_sweep  # type: ignore[attr-defined]
    add_slot_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print the list as JSON")


def run(args: argparse.Namespace) -> int:
    if args.action == "drain" and not (args.which or "").isdecimal():
        raise UsageError("runyard agents drain: which agent?", mend="runyard agents drain 3")
    if args.action == "list" and args.which is not None:
        raise UsageError("runyard agents list takes no name", mend="runyard agents")
    api = server()
    if args.action == "add":
        return _add(api, args)
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


def _add(api: Api, args: argparse.Namespace) -> int:
    from runyard.cli.sweep_watch import agent_command, working_folder

    found = find_sweep(api, args.which)
    if found["state"] not in _OPEN:
        raise UsageError(
            f"sweep {found['id']} has ended: {found['state']}",
            mend=f"`runyard retry {found['id']}` runs what failed",
        )
    slots = read_slots(args).of_sweep(found)
    home, folder = locate(), working_folder(found["folder"])
    log = home.path / "agents" / f"{found['id']}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
    log.parent.mkdir(mode=0o700, exist_ok=True)
    with log.open("ab") as output:
        process = subprocess.Popen(
            agent_command(
                found["key"], slots=slots, count=None, folder=folder, leash=None, quiet=False
            ),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            cwd=folder,
            env={**os.environ, "RUNYARD_HOME": str(home.path)},
        )
    say(f"an agent works on {found['id']}, {slots}: process {process.pid}")
    say(f"what it says is in {log}")
    return 0
