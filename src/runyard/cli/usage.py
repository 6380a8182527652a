"""The hours that you have used, by account: CPU hours, GPU hours, jobs.

  runyard usage               the last 30 days
  runyard usage --days 365

Where the cluster's profile names a command of the site's own, that is run. Otherwise it is counted
from Slurm's accounting; and where a site keeps none, from what runyard itself submitted.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from runyard.cli.connect import server
from runyard.cli.output import print_json, print_table, say
from runyard.cli.parser import positive
from runyard.errors import RunyardError
from runyard.launch.watching import account_for, look
from runyard.schedulers.errors import NoAccounting, SchedulerError
from runyard.schedulers.slurm.accounting import own_records
from runyard.schedulers.slurm.commands import ask, for_reading

_DAY = 86400.0
_SECONDS = 60.0


@dataclass(frozen=True)
class Used:
    """What one account has used."""

    account: str
    jobs: int = 0
    cpu_hours: float = 0.0
    gpu_hours: float = 0.0
    fair_share: float | None = None

    def plus(self, cpu_seconds: float, gpu_seconds: float) -> Used:
        return Used(self.account, self.jobs + 1, self.cpu_hours + cpu_seconds / 3600,
                    self.gpu_hours + gpu_seconds / 3600, self.fair_share)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--days", type=positive, default=30, metavar="N",
                        help="how far back (default 30)")  # fmt: skip
    parser.add_argument("--ledger", action="store_true",
                        help="only what runyard submitted, from its own ledger")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    command = None if args.ledger or args.json else _site_command()
    if command is not None:
        return _run_site(command)
    since = time.time() - args.days * _DAY
    found, source = _count(since, ledger=args.ledger)
    if args.json:
        print_json({"source": source, "days": args.days, "accounts": [asdict(u) for u in found]})
        return 0
    if not found:
        say(f"nothing was used in the last {args.days} days ({source})")
        return 0
    print_table(
        ("ACCOUNT", "JOBS", "CPU HOURS", "GPU HOURS", "FAIR SHARE"),
        (
            (
                one.account or "-",
                str(one.jobs),
                _hours(one.cpu_hours),
                _hours(one.gpu_hours),
                "-" if one.fair_share is None else f"{one.fair_share:.3f}",
            )
            for one in found
        ),
    )
    say(f"the last {args.days} days, from {source}")
    return 0


def _hours(hours: float) -> str:
    return f"{hours:.0f}" if hours >= 100 else f"{hours:.2f}"


def _site_command() -> str | None:
    from runyard.clusters.load import load_profile
    from runyard.clusters.place import recognise, this_place

    return load_profile(recognise(this_place()).name).accounting.usage_command


def _run_site(command: str) -> int:
    """The site's own command, its words passed on as they come."""
    say(f"as the site tells it: {command}")
    try:
        return subprocess.run(shlex.split(command), check=False, timeout=_SECONDS).returncode
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunyardError(
            f"the site's command does not answer: {command}",
            said=error,
            mend="`runyard usage --ledger` counts what runyard submitted",
        ) from error


def _count(since: float, *, ledger: bool) -> tuple[list[Used], str]:
    if ledger:
        return _of_ledger(since), "runyard's own ledger"
    try:
        records = own_records(since, seconds=_SECONDS)
    except NoAccounting as error:
        say(f"{error}; this is what runyard submitted")
        return _of_ledger(since), "runyard's own ledger"
    shares = _fair_shares()
    found: dict[str, Used] = {}
    for one in records:
        before = found.get(one.account) or Used(one.account, fair_share=shares.get(one.account))
        found[one.account] = before.plus(one.cpus * one.seconds, one.gpus * one.seconds)
    return list(found.values()), "Slurm's accounting"


def _of_ledger(since: float) -> list[Used]:
    api = server()
    looked = look(api.jobs, api.jobs.jobs())
    jobs, _ = account_for(api.jobs, [one for one in looked.jobs if one["submitted_at"] >= since])
    found: dict[str, Used] = {}
    for job in jobs:
        account = str(job["asked"].get("account") or "")
        held = job["used"].get("seconds")
        if held is None and job["started_at"] is not None:
            held = max(0.0, (job["ended_at"] or time.time()) - job["started_at"])
        cpus, gpus = job["asked"].get("cpus") or 1, job["asked"].get("gpus") or 0
        cpu = job["used"].get("cpu_seconds_held", (held or 0.0) * cpus)
        gpu = job["used"].get("gpu_seconds_held", (held or 0.0) * gpus)
        found[account] = (found.get(account) or Used(account)).plus(cpu, gpu)
    return list(found.values())


def _fair_shares() -> dict[str, float]:
    """By account; empty where the site does not reckon with them."""
    words = ["sshare", "-U", "--parsable2", "--noheader", "--format=Account,FairShare"]
    try:
        answer = ask(words, environ=for_reading(), patience=0.0, seconds=_SECONDS)
    except SchedulerError:
        return {}
    return dict(_shares(answer.said.splitlines()))


def _shares(lines: Iterable[str]) -> Iterable[tuple[str, float]]:
    for line in lines:
        account, _, share = line.strip().partition("|")
        try:
            yield account, float(share)
        except ValueError:
            continue
