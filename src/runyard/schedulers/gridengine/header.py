"""The `#$` lines of a job: what a request asks for, as options of `qsub`. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runyard.errors import ConfigError
from runyard.schedulers.gridengine.script_words import WORDS
from runyard.schedulers.gridengine.settings import SiteNames
from runyard.schedulers.jobs import Header, Option

if TYPE_CHECKING:
    from runyard.schedulers.header_request import HeaderRequest, ScriptPlace
    from runyard.schedulers.resources import Ruled

_MAIL = {"BEGIN": "b", "END": "e", "FAIL": "a", "REQUEUE": "a", "ALL": "bea", "NONE": "n"}
# Not in a job's name (sge_types(5)).
_FORBIDDEN = re.compile(r"[\s/:@\\*?]")
# What a log's name is made of, as Grid Engine writes it.
_IN_A_LOG = {"%A": "$JOB_ID", "%j": "$JOB_ID", "%a": "$TASK_ID", "%N": "$HOSTNAME"}


def job_name(text: str) -> str:
    """A name that Grid Engine takes: it must not begin with a digit."""
    name = _FORBIDDEN.sub("-", text)
    return name if name[:1].isalpha() else f"j-{name}"


def header(wanted: HeaderRequest) -> Header:
    resources, ruled, site = wanted.request.resources, wanted.ruled, wanted.profile.gridengine
    if wanted.form == "nodes" or (resources.nodes or 1) > 1 or (resources.tasks_per_node or 1) > 1:
        raise ConfigError(
            "jobs of Grid Engine have one node and one task each, as far as runyard knows it",
            mend="leave out --nodes, --tasks-per-node and agents: {form: nodes}",
        )
    slots = ruled.cpus or 1
    mail = "".join(_MAIL.get(event, "") for event in ruled.options.get("mail", "").split(","))
    named = {
        "N": job_name(wanted.name),
        "r": "y" if wanted.requeue else "n",
        "P": ruled.account,
        "q": ruled.partition,
        "pe": None if slots == 1 else f"{site.cores} {slots}",
        "l": ",".join(_resources(ruled, slots, site)) or None,
        "m": "".join(dict.fromkeys(mail)) or None,
        "M": ruled.options.get("mail_to"),
    }
    options: list[Option] = [(option, value) for option, value in named.items() if value]
    for word in (*wanted.profile.submission.always, *wanted.more, *resources.extra):
        option, _, value = word.strip().lstrip("-").partition(" ")
        options.append((option, value or None))
    return Header(tuple(options))


def header_lines(header: Header, place: ScriptPlace) -> list[str]:
    options = list(header.options)
    if place.tasks is not None:
        options.append(("t", f"1-{place.tasks}"))
        options += [] if place.at_once is None else [("tc", str(place.at_once))]
    path = place.log or "/dev/null"
    for mark, variable in _IN_A_LOG.items():
        path = path.replace(mark, variable)
    options += [("o", path), ("j", "y")]
    if place.folder is not None and WORDS.is_plain(place.folder):
        options.append(("wd", str(place.folder)))
    return [f"#$ -{name}" if value is None else f"#$ -{name} {value}" for name, value in options]


def renumber(text: str, tasks: int) -> str:
    return re.sub(r"^(#\$ -t 1-)\d+", rf"\g<1>{tasks}", text, flags=re.MULTILINE)


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
