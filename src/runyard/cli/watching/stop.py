"""Ask a run to stop, or a sweep.

  runyard stop a1b2c3d4      a run: it ends as by Ctrl-C, and keeps what it logged
  runyard stop SWEEP         a sweep: what runs finishes, nothing new begins

Its client hears of it within seconds, or half a minute, and ends the program as Ctrl-C would; what
was logged is kept, and the run ends as killed. A program without wandb gets SIGTERM from the
`runyard run` beside it.

RUN is an id, the beginning of one, a name, or PROJECT/any of these. A sweep's id or name stops the
sweep, as `runyard sweep --stop` does: what runs finishes, and nothing new begins.
"""

from __future__ import annotations

import argparse

from runyard.actions.naming import find_run_or_sweep
from runyard.cli.completers import complete_run
from runyard.cli.connect import server
from runyard.cli.output import print_json, say
from runyard.cli.watching.sweep_steer import steer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    argument = parser.add_argument("run", metavar="RUN", help="which run")
    argument.completer = complete_run  # type: ignore[attr-defined]
    parser.add_argument("--json", action="store_true", help="print the run as JSON")


def run(args: argparse.Namespace) -> int:
    api = server()
    named = find_run_or_sweep(api, args.run)
    if named.run is None:
        assert named.sweep is not None
        return steer(api, named.sweep, "stop", as_json=args.json)
    asked = api.stop_run(named.run)
    if args.json:
        print_json(asked)
    elif asked["stop_asked"] and asked["state"] != "killed":
        say(f"run {asked['id']} was asked to stop; `runyard show {asked['id']}` says when it has")
    elif named.run["state"] == "pending":
        say(f"run {asked['id']} had not started, and will not")
    else:
        say(f"run {asked['id']} has ended already ({asked['state']})")
    return 0
