"""The hours that the user has used, by account."""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass

from runyard.actions.events import Notice, Notify, ignore
from runyard.client.api import Api
from runyard.errors import RunyardError
from runyard.launch.watching import account_for, look
from runyard.schedulers.choice import cluster
from runyard.schedulers.errors import NoAccounting

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


@dataclass(frozen=True)
class Usage:
    """`source` says where the figures come from."""

    accounts: list[Used]
    source: str


def site_usage_command() -> str | None:
    """The command by which the site itself tells it, where its profile names one."""
    from runyard.clusters.load import load_profile
    from runyard.clusters.place import recognise, this_place

    return load_profile(recognise(this_place()).name).accounting.usage_command


def run_site_command(command: str) -> int:
    """The site's own command, its words passed on as they come."""
    try:
        return subprocess.run(shlex.split(command), check=False, timeout=_SECONDS).returncode
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunyardError(
            f"the site's command does not answer: {command}",
            said=error,
            mend="`runyard clusters usage --ledger` counts what runyard submitted",
        ) from error


def count_usage(
    days: int, connect: Callable[[], Api], notify: Notify = ignore, *, ledger: bool = False
) -> Usage:
    """Of the last days; with `ledger`, or without accounting, only what runyard submitted."""
    since = time.time() - days * _DAY
    if ledger:
        return Usage(_of_ledger(connect(), since), "runyard's own ledger")
    scheduler = cluster()
    try:
        records = scheduler.own_records(since, seconds=_SECONDS)
    except NoAccounting as error:
        notify(Notice(f"{error}; this is what runyard submitted"))
        return Usage(_of_ledger(connect(), since), "runyard's own ledger")
    shares = scheduler.fair_shares()
    accounts: dict[str, Used] = {}
    for record in records:
        name = record.account
        before = accounts.get(name) or Used(name, fair_share=shares.get(name))
        accounts[name] = before.plus(record.cpus * record.seconds, record.gpus * record.seconds)
    return Usage(list(accounts.values()), f"{scheduler.title}'s accounting")


def _of_ledger(api: Api, since: float) -> list[Used]:
    looked = look(api.jobs, api.jobs.jobs())
    jobs, _ = account_for(api.jobs, [job for job in looked.jobs if job["submitted_at"] >= since])
    accounts: dict[str, Used] = {}
    for job in jobs:
        account = str(job["asked"].get("account") or "")
        held = job["used"].get("seconds")
        if held is None and job["started_at"] is not None:
            held = max(0.0, (job["ended_at"] or time.time()) - job["started_at"])
        cpus, gpus = job["asked"].get("cpus") or 1, job["asked"].get("gpus") or 0
        cpu = job["used"].get("cpu_seconds_held", (held or 0.0) * cpus)
        gpu = job["used"].get("gpu_seconds_held", (held or 0.0) * gpus)
        accounts[account] = (accounts.get(account) or Used(account)).plus(cpu, gpu)
    return list(accounts.values())
