"""The `#SBATCH` lines of a job: options in a fixed order, in the form that the site takes. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from runyard.schedulers.jobs import Header, Option
from runyard.schedulers.resources import Ruled
from runyard.schedulers.slurm.script_words import WORDS
from runyard.schedulers.slurm.values import clock

if TYPE_CHECKING:
    from runyard.clusters.profile import Profile
    from runyard.schedulers.header_request import HeaderRequest, ScriptPlace

# Slurm looks every minute for jobs that are to be told, and may tell them a minute too soon: in a
# shorter job that would be most of it. The agent knows the end by itself anyway.
_SHORTEST_TOLD = 600.0


# Lists of parts with names: what a word names takes the place of that part, the others stay.
_LISTS = ("gres", "licenses", "tres-per-task")
# Lists to which a word adds.
_NODES_AND_EVENTS = ("exclude", "mail-type")
# Of options that ask for the same, the last one counts.
_GPUS = {"gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket"}
_MEMORY = {"mem", "mem-per-cpu", "mem-per-gpu"}


def header(wanted: HeaderRequest) -> Header:
    resources, profile, ruled = wanted.request.resources, wanted.profile, wanted.ruled
    nodes = wanted.agents if wanted.form == "nodes" else resources.nodes or 1
    tasks = 1 if wanted.form == "nodes" else resources.tasks_per_node or 1
    options: list[Option] = [("job-name", wanted.name)]

    def add(option: str, value: object) -> None:
        if value is not None:
            options.append((option, str(value)))

    add("account", ruled.account)
    add("partition", ruled.partition)
    add("qos", ruled.qos)
    add("constraint", ruled.options.get("constraint"))
    add("reservation", ruled.options.get("reservation"))
    add("exclude", ruled.options.get("exclude"))
    add("nodes", nodes)
    add("ntasks-per-node", tasks)
    add("cpus-per-task", ruled.cpus)
    options += _gpus(profile, ruled, tasks)
    options += _memory(profile, ruled, tasks)
    add("time", clock(ruled.time) if ruled.asks_time else None)
    takes_signal = "signal" not in profile.submission.forbidden
    if wanted.grace >= 1 and ruled.time >= _SHORTEST_TOLD and takes_signal:
        add("signal", f"B:{wanted.signal}@{wanted.grace:.0f}")
    if not profile.elasticity.requeue:
        options.append(("no-requeue", None))
    elif profile.elasticity.spot or profile.elasticity.spot_qos:
        options.append(("requeue", None))
    add("open-mode", "append")
    add("mail-type", ruled.options.get("mail"))
    add("mail-user", ruled.options.get("mail_to"))
    again = ("--requeue",) if wanted.requeue else ()
    words = (*profile.submission.always, *wanted.more, *again, *resources.extra)
    return put_together(words, options)


def option_words(header: Header) -> list[str]:
    """As sbatch takes them on its command line."""
    return [f"--{name}" if value is None else f"--{name}={value}" for name, value in header.options]


def header_lines(header: Header, place: ScriptPlace) -> list[str]:
    options = option_words(header)
    if place.tasks is not None:
        throttle = "" if place.at_once is None else f"%{place.at_once}"
        options.insert(1, f"--array=1-{place.tasks}{throttle}")
    options.append(f"--output={place.log or '/dev/null'}")
    if place.folder is not None and WORDS.is_plain(place.folder):
        options.append(f"--chdir={place.folder}")
    return [f"#SBATCH {_quoted(option)}" for option in options]


def renumber(text: str, tasks: int) -> str:
    return re.sub(r"^(#SBATCH --array=1-)\d+", rf"\g<1>{tasks}", text, flags=re.MULTILINE)


def _quoted(option: str) -> str:
    """As sbatch reads a line of a script: quotes hold a value together."""
    name, equals, value = option.partition("=")
    return f'{name}="{value}"' if equals and re.search(r"[\s;&|<>()]", value) else option


def put_together(words: Iterable[str], options: Sequence[Option] = ()) -> Header:
    """Options, and words as sbatch takes them."""
    for word in words:
        options = _with_word(options, word)
    return Header(tuple(options))


def _with_word(options: Sequence[Option], word: str) -> list[Option]:
    """The options and one more, as sbatch takes it: it replaces what asks for the same."""
    name, _, value = word.lstrip("-").replace("=", " ", 1).partition(" ")
    value, before = value.strip(), dict(options).get(name)
    asks_gpus = name in _GPUS or (name == "gres" and "gpu" in _names(value))
    kept: list[Option] = []
    for other, old in options:
        if other == name or (asks_gpus and other in _GPUS) or {name, other} <= _MEMORY:
            continue
        left = _without(old, {"gpu"}) if asks_gpus and other == "gres" and old else old
        if left or not old:
            kept.append((other, left))
    if before and value != "none" and name in _LISTS:
        value = ",".join(filter(None, (_without(before, _names(value)), value)))
    elif before and name in _NODES_AND_EVENTS:
        value = f"{before},{value}"
    return [*kept, (name, value or None)]


def _without(text: str, names: Collection[str]) -> str:
    """A list without the parts of these names."""
    return ",".join(part for part in text.split(",") if not _names(part) & set(names))


def _names(text: str) -> set[str]:
    """gpu and lscratch, of gpu:a100:2,lscratch:100."""
    return {re.split("[:=]", part)[0] for part in text.split(",")}


def _gpus(profile: Profile, ruled: Ruled, tasks: int) -> list[Option]:
    """As many on each node as was asked, in the form that the site takes."""
    if not ruled.gpus:
        return []

    def typed(count: int) -> str:
        return f"{ruled.gpu_type}:{count}" if ruled.gpu_type else str(count)

    # What tasks cannot share evenly is the node's.
    per_task = "gpus-per-node" if ruled.gpus % tasks else "gpus-per-task"
    forms: dict[str, Option] = {
        "gpus_per_node": ("gpus-per-node", typed(ruled.gpus)),
        "gpus_per_task": (per_task, typed(ruled.gpus // (1 if ruled.gpus % tasks else tasks))),
        "gres": ("gres", f"gpu:{typed(ruled.gpus)}"),
    }
    return [forms[profile.gpus.form]] if profile.gpus.form in forms else []


def _memory(profile: Profile, ruled: Ruled, tasks: int) -> list[Option]:
    """The one amount that was asked, in the form that the site permits."""
    gpus, cpus = ruled.gpus or 0, (ruled.cpus or 1) * tasks
    total = ruled.memory
    if total is None:
        return []
    if profile.memory.form == "per_cpu" and total:
        return [("mem-per-cpu", f"{-(-total // cpus)}M")]
    if profile.memory.form == "per_gpu" and total and gpus:
        return [("mem-per-gpu", f"{-(-total // gpus)}M")]
    return [("mem", f"{total}M" if total else "0")]
