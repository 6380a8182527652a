"""End a sweep with all that runs of it, or one trial, at once.

A sweep's trials that have not run are not run; `runyard sweep --resume SWEEP` brings them back. To
let finish what runs, `runyard stop SWEEP`. SWEEP and TRIAL are an id, a name, or a part of either.
"""

from __future__ import annotations

import argparse

from runyard.cli.connect import complete_run, complete_sweep, server
from runyard.cli.output import print_json, say
from runyard.cli.show import find_run, sweep_instead
from runyard.cli.sweep_steer import steer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_argument("what", metavar="SWEEP|TRIAL", help="a sweep, or one of its trials")
    which.completer = _complete  # type: ignore[attr-defined]
    parser.add_argument("--json", action="store_true", help="print what became of it as JSON")


def run(args: argparse.Namespace) -> int:
    api = server()
    sweep = sweep_instead(api, args.what)
    if sweep is not None:
        return steer(api, sweep, "cancel", as_json=args.json)
    asked = api.stop_run(find_run(api, args.what))
    if args.json:
        print_json(asked)
    elif asked["stop_asked"]:
        say(f"trial {asked['name']} ({asked['id']}) is asked to end")
    else:
        say(f"trial {asked['name']} ({asked['id']}) has ended already: {asked['state']}")
    return 0


def _complete(prefix: str, **_: object) -> list[str]:
    return [*complete_sweep(prefix), *complete_run(prefix)]
