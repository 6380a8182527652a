"""Run the failed trials of a sweep again, in their folders and under their names.

  runyard retry SWEEP                  all that failed
  runyard retry SWEEP --cause memory   only those that ran out of memory
  runyard retry SWEEP --trial NAME     only this one; may be repeated

If an agent is at work on the sweep, it takes them; otherwise they run here. SWEEP is an id, a name,
or a part of either; without it, the newest.
"""

from __future__ import annotations

import argparse

from runyard.cli.connect import complete_sweep, server
from runyard.cli.output import print_json, say
from runyard.cli.parser import nearest
from runyard.cli.slots import add_slot_arguments, read_slots
from runyard.cli.sweeps import find_sweep
from runyard.client.sweeps import Sweep, Trial
from runyard.errors import NotFoundError, UsageError
from runyard.home import locate


def add_arguments(parser: argparse.ArgumentParser) -> None:
    which = parser.add_argument("sweep", nargs="?", metavar="SWEEP", help="default: the newest")
    which.completer = complete_sweep  # type: ignore[attr-defined]
    parser.add_argument("--cause", metavar="CAUSE",
                        help="only those that failed so: memory, program, signal, ...")  # fmt: skip
    parser.add_argument("--trial", action="append", metavar="NAME", help="only this one")
    add_slot_arguments(parser)
    parser.add_argument("--no-run", action="store_true", help="put them into the queue, no more")
    parser.add_argument("--json", action="store_true", help="print the sweep as JSON")


def run(args: argparse.Namespace) -> int:
    api = server()
    found = find_sweep(api, args.sweep)
    chosen = _chosen(args, found, api.sweeps.trials(found["key"], state="failed"))
    after = api.sweeps.retry(found["key"], [one["number"] for one in chosen])
    say(f"sweep {after['id']}: {len(chosen)} failed trials run again")
    if args.no_run or after["agents"]:
        if not after["agents"]:
            say(f"nobody works on it: `runyard sweep {after['id']}` does")
        if args.json:
            print_json(after)
        return 0
    from runyard.cli.farm_work import work_on

    return work_on(locate(), after, slots=read_slots(args).of_sweep(after), as_json=args.json)


def _chosen(args: argparse.Namespace, sweep: Sweep, failed: list[Trial]) -> list[Trial]:
    if not failed:
        raise UsageError(
            f"no trial of sweep {sweep['id']} has failed",
            mend=f"`runyard show {sweep['id']}` says how it stands; `runyard rerun TRIAL` runs any "
            "trial once more",
        )
    chosen = failed
    if args.cause is not None:
        chosen = [one for one in failed if one["cause"] == args.cause]
        if not chosen:
            causes = ", ".join(sorted({one["cause"] or "program" for one in failed}))
            raise NotFoundError(
                f"no trial of sweep {sweep['id']} failed for {args.cause!r}",
                mend=f"they failed for: {causes}",
            )
    for name in args.trial or ():
        names = {text for one in failed for text in (one["name"], one["id"])}
        if name not in names:
            guess = nearest(name, names)
            raise NotFoundError(
                f"no failed trial of sweep {sweep['id']} is called {name!r}",
                mend=f"did you mean {guess}?" if guess else f"`runyard status {sweep['id']}`",
            )
    if args.trial:
        chosen = [one for one in chosen if {one["name"], one["id"]} & set(args.trial)]
    return chosen
