"""The `#$` lines of a job: what a request asks for, as options of `qsub`. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runyard.schedulers.gridengine.sending import job_name

if TYPE_CHECKING:
    from runyard.schedulers.resources import Ruled

_MAIL = {"BEGIN": "b", "END": "e", "FAIL": "a", "REQUEUE": "a", "ALL": "bea", "NONE": "n"}


@dataclass(frozen=True)
class SiteNames:
    """What administrators choose: Grid Engine itself has no name for any of these."""

    cores: str = "smp"
    """The parallel environment whose slots are all on one host."""
    memory: str = "h_vmem"
    gpu: str = "gpu"


def header_lines(
    name: str,
    ruled: Ruled,
    *,
    log: str,
    folder: str,
    tasks: int | None = None,
    at_once: int | None = None,
    notify: bool = False,
    requeue: bool = False,
    site: SiteNames | None = None,
    more: Sequence[str] = (),
) -> list[str]:
    """Lines for one job, or for an array of `tasks`; `$TASK_ID` in `log` is a task's number."""
    site = site or SiteNames()
    slots = ruled.cpus or 1
    options = [f"-N {job_name(name)}", f"-o {log}", "-j y", f"-wd {folder}"]
    options += [f"-r {'y' if requeue else 'n'}"]
    if tasks is not None:
        options.append(f"-t 1-{tasks}")
        options += [] if at_once is None else [f"-tc {at_once}"]
    options += [] if ruled.account is None else [f"-P {ruled.account}"]
    options += [] if ruled.partition is None else [f"-q {ruled.partition}"]
    options += [] if slots == 1 else [f"-pe {site.cores} {slots}"]
    resources = _resources(ruled, slots, site)
    options += [f"-l {','.join(resources)}"] if resources else []
    # USR2 before KILL, at `qdel` and at the end of the time; the queue says how long before.
    options += ["-notify"] if notify else []
    mail = "".join(_MAIL.get(event, "") for event in ruled.options.get("mail", "").split(","))
    options += [f"-m {''.join(dict.fromkeys(mail))}"] if mail else []
    options += [f"-M {ruled.options['mail_to']}"] if "mail_to" in ruled.options else []
    return [f"#$ {option}" for option in (*options, *more)]


def _resources(ruled: Ruled, slots: int, site: SiteNames) -> list[str]:
    """What `-l` asks for. Memory and GPUs are counted for each slot, as Grid Engine does."""
    resources = []
    if ruled.asks_time:
        # Not s_rt as well: a job is killed soon after it, however much of h_rt is left.
        resources.append(f"h_rt={max(1, round(ruled.time))}")
    if ruled.memory:
        resources.append(f"{site.memory}={-(-ruled.memory // slots)}M")
    if ruled.gpus:
        resources.append(f"{site.gpu}={-(-ruled.gpus // slots)}")
    if "constraint" in ruled.options:
        resources.append(ruled.options["constraint"])
    if "exclude" in ruled.options:
        hosts = "|".join(ruled.options["exclude"].split(","))
        resources.append(f"h=!({hosts})")
    return resources
