"""The hours that you have used, by account: CPU hours, GPU hours, jobs.

  runyard clusters usage               the last 30 days
  runyard clusters usage --days 365

Where the cluster's profile names a command of the site's own, that is run. Otherwise it is counted
from Slurm's accounting; and where a site keeps none, from what runyard itself submitted.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict

from runyard.actions.cluster.usage import count_usage, run_site_command, site_usage_command
from runyard.cli.connect import server
from runyard.cli.output import Columns, print_json, print_records, say, show
from runyard.cli.parser import add, flag, positive


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add(parser, "--days N", "how far back (default 30)", type=positive, default=30)
    flag(parser, "--ledger", "only what runyard submitted, from its own ledger")
    flag(parser, "--json", "print JSON")


def run(args: argparse.Namespace) -> int:
    command = None if args.ledger or args.json else site_usage_command()
    if command is not None:
        say(f"as the site tells it: {command}")
        return run_site_command(command)
    usage = count_usage(args.days, server, show, ledger=args.ledger)
    if args.json:
        accounts = [asdict(account) for account in usage.accounts]
        print_json({"source": usage.source, "days": args.days, "accounts": accounts})
    elif not usage.accounts:
        say(f"nothing was used in the last {args.days} days ({usage.source})")
    else:
        print_records(_COLUMNS, usage.accounts)
        say(f"the last {args.days} days, from {usage.source}")
    return 0


def _hours(hours: float) -> str:
    return f"{hours:.0f}" if hours >= 100 else f"{hours:.2f}"


_COLUMNS: Columns = {
    "ACCOUNT": lambda used: used.account or "-",
    "JOBS": lambda used: str(used.jobs),
    "CPU HOURS": lambda used: _hours(used.cpu_hours),
    "GPU HOURS": lambda used: _hours(used.gpu_hours),
    "FAIR SHARE": lambda used: "-" if used.fair_share is None else f"{used.fair_share:.3f}",
}
