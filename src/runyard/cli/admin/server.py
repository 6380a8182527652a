"""Start, stop or look at the server.

  runyard server status                      where it is, and how it does
  runyard server start --listen cluster      so that compute nodes reach it
  runyard server submit --time 1-0           as a Slurm job, where login nodes forbid daemons
  runyard server restart --tls               encrypted, with an authority of its own
  runyard server ca                          that authority's certificate, for a browser

It starts by itself on the first command that needs it, so `start` is for choosing where it
listens, and `stop` for a quiet machine. Nothing is lost by stopping it: programs that log keep
what they have and try again. The exit code of `status` is 3 where no server runs.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from runyard.actions.server import control
from runyard.actions.server.jobs import status_line
from runyard.cli.admin import server_jobs
from runyard.cli.connect import server
from runyard.cli.output import ago, print_json, say, show
from runyard.cli.parser import add, flag, port
from runyard.client.discover import Found
from runyard.client.server_jobs import ServerJobs
from runyard.errors import UsageError
from runyard.home import Home, locate


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add(parser, "action ACTION", "start, stop, restart, status, backup, ca or submit",
        choices=tuple(_ACTIONS))  # fmt: skip
    add(parser, "folder FOLDER", "with backup: a new folder for the copy", nargs="?", type=Path)
    add(parser, "--listen ADDRESS", "listen here, or `cluster`: where compute nodes reach it "
        "(default: as last time, or 127.0.0.1)")  # fmt: skip
    add(parser, "--port", "port (default: as last time, or a free one)", type=port)
    server_jobs.add_access_arguments(parser)
    flag(parser, "--force", "with stop: also when it hangs")
    flag(parser, "--json", "with status and submit: print JSON")
    server_jobs.add_submit_arguments(parser)


def run(args: argparse.Namespace) -> int:
    home = locate()
    if (args.folder is None) == (args.action == "backup"):
        raise UsageError(
            f"runyard server {args.action} takes {'a' if args.folder is None else 'no'} folder",
            mend="runyard server backup ~/runyard-copy",
        )
    if args.listen == "cluster":
        args.listen = control.cluster_listen()
    return _ACTIONS[args.action](home, args)


def _backup(home: Home, args: argparse.Namespace) -> int:
    """A copy that is a state folder itself, made while everything goes on."""
    target = Path(os.path.abspath(args.folder.expanduser()))  # noqa: PTH100 - Links stay as they are.
    size = control.backup(lambda: server(home), target, _tell_progress)
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    print(f"copied {size / 1e6:.1f} MB to {target}; look at it with RUNYARD_HOME={target}")
    return 0


def _tell_progress(copied: int, total: int) -> None:
    if sys.stderr.isatty():
        line = f"copied {copied / 1e6:.0f} of {total / 1e6:.0f} MB"
        print(f"\r\x1b[Krunyard: {line}", end="", file=sys.stderr, flush=True)


def _start(home: Home, args: argparse.Namespace) -> int:
    server = control.start(home, _request(args), show)
    if server.started:
        _tell_start(home, server)
    else:
        print(f"already running at {server.api.url} (state in {home.path})")
    return 0


def _request(args: argparse.Namespace) -> control.ServerRequest:
    return control.ServerRequest(args.listen, args.port, server_jobs.access_of(args))


def _stop(home: Home, args: argparse.Namespace) -> int:
    sweeps = [] if args.force else control.swept_by_agents(home)
    stopped = control.stop(home, force=args.force)
    if isinstance(stopped, ServerJobs):
        print(f"stopped the server of {home.path} and cancelled {stopped.said()}")
    elif stopped:
        print(f"stopped the server of {home.path}")
        for sweep in sweeps:
            say(
                f"agents of sweep {sweep} are at work and start it again; "
                f"`runyard sweep --pause {sweep}` first lets no new trial begin"
            )
    else:
        print(f"no server of {home.path} is running")
    return 0


def _restart(home: Home, args: argparse.Namespace) -> int:
    _tell_start(home, control.restart(home, _request(args), force=args.force))
    return 0


def _tell_start(home: Home, server: Found) -> None:
    print(f"started at {server.api.url} (state in {home.path})")
    if server.note:
        say(server.note)


def _status(home: Home, args: argparse.Namespace) -> int:
    """Exit code 0 when it runs, 3 when it does not, as init scripts have it."""
    state = control.status(home)
    health, discovery, jobs = state.health, state.discovery, state.jobs
    if args.json:
        print_json(state.to_json())
    elif health is not None and discovery is not None:
        print(f"running at {discovery.url}, process {health['pid']} on {health['hostname']}")
        print(f"  started {ago(health['started_at'])}, runyard {health['version']}")
        size = health["database_bytes"] / 1e6
        print(f"  {health['runs']} runs, {health['running']} of them running; {size:.1f} MB")
        print(f"  {control.writer_line(health['writer'])}")
        print(f"  state in {home.path}, log in {home.log}")
        if health["note"]:
            say(health["note"])
    else:
        print(f"not running (state in {home.path})")
        if discovery is not None and discovery.running:
            if jobs is not None:
                pass
            elif state.is_held():
                print(f"  process {discovery.pid} on {discovery.hostname} holds the folder but "
                      f"does not answer at {discovery.url}; log in {home.log}")  # fmt: skip
            else:
                print(f"  it died (started {ago(discovery.started_at)} on {discovery.hostname}); "
                      f"any command starts it again, log in {home.log}")  # fmt: skip
    if jobs is not None and not args.json:
        print(f"  {status_line(home)}")
    return 0 if health is not None else 3


_ACTIONS = {
    "start": _start,
    "stop": _stop,
    "restart": _restart,
    "status": _status,
    "backup": _backup,
    "ca": server_jobs.print_authority,
    "submit": server_jobs.submit,
    "run": server_jobs.run,
}
