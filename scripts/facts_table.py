"""The facts of profiles as tables for the documentation.

Facts that several clusters share are in one table; the other table has a column for each cluster.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from runyard.clusters.profile import GpuSlice, GpuType, Limit, Profile
from runyard.reading.units import short_time
from runyard.schedulers.slurm.settings import GPU_OPTIONS, MEMORY_OPTIONS

# A page marks the lines around its tables, and names the profiles.
_PLACE = re.compile(r"(<!-- facts: ([\w -]+) -->\n).*?(<!-- end of facts -->)", re.DOTALL)
_SILENT = "-"


def with_facts(page: str, load: Callable[[str], Profile]) -> str:
    """A page with new tables of facts."""
    return _PLACE.sub(
        lambda match: (
            f"{match[1]}\n{facts_tables([load(name) for name in match[2].split()])}\n\n{match[3]}"
        ),
        page,
    )


def facts_tables(profiles: Sequence[Profile]) -> str:
    """One table for a single profile; for several, what they share and then what differs."""
    rows = [(title, [tell(profile) for profile in profiles]) for title, tell in FACTS]
    rows = [(title, cells) for title, cells in rows if any(cells)]
    same = [(title, cells[:1]) for title, cells in rows if len(set(cells)) == 1]
    different = [(title, cells) for title, cells in rows if len(set(cells)) > 1]
    names = [f"`{profile.name}`" for profile in profiles]
    tables = [_table(", ".join(names) if len(names) == 1 else "all of them", same)] if same else []
    if different:
        tables.append(_table(" | ".join(names), different))
    return "\n\n".join(tables)


def _table(heads: str, rows: Sequence[tuple[str, Sequence[str]]]) -> str:
    columns = heads.count("|") + 2
    lines = [f"| | {heads} |", f"| {' | '.join(['---'] * columns)} |"]
    for title, cells in rows:
        cells_text = " | ".join(cell.replace("|", "\\|") or _SILENT for cell in cells)
        lines.append(f"| {title} | {cells_text} |")
    return "\n".join(lines)


def _listed(parts: Iterator[str] | Sequence[str]) -> str:
    return "; ".join(parts)


def _joined(*parts: tuple[object, str]) -> str:
    """The values in words, separated by commas; values that are not set are left out."""
    return ", ".join(words.format(value) for value, words in parts if value)


def _code(words: Sequence[object]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _reasons(profile: Profile, *tables: str) -> str:
    return _listed(
        f"`{option}`: {reason}"
        for table in tables
        for option, reason in getattr(profile.submission, table).items()
    )


def _values(profile: Profile) -> str:
    return _listed(f"`{name}`: {_code(some)}" for name, some in profile.submission.values.items())


def _defaults(profile: Profile) -> str:
    return ", ".join(f"`{name}: {value}`" for name, value in profile.submission.defaults.items())


def _lengths(limit: Limit) -> str:
    shortest, longest = limit.shortest, limit.longest
    if shortest and longest:
        return f"{short_time(shortest)} to {short_time(longest)}"
    if longest:
        return f"up to {short_time(longest)}"
    return f"{short_time(shortest)} or more" if shortest else ""


def _job_length(profile: Profile) -> str:
    lengths = _lengths(profile.limits)
    test = profile.limits.test_job
    return f"{lengths}; tests up to {short_time(test)}" if lengths and test else lengths


def _special_lengths(profile: Profile) -> str:
    """Limits of single partitions and QOS."""
    tables = [("partition", profile.limits.by_partition), ("QOS", profile.limits.by_qos)]
    parts = []
    for what, limits in tables:
        for name, limit in limits.items():
            rest = [f"{limit.most_nodes} nodes at most"] if limit.most_nodes else []
            rest += [] if limit.chaining else ["no chains"]
            parts.append(f"{what} `{name}` " + ", ".join([_lengths(limit), *rest]))
    return _listed(parts)


def _how_many(profile: Profile) -> str:
    limits = profile.limits
    return _joined(
        (limits.jobs_at_once, "{} at work"),
        (limits.submitted_at_once, "{} waiting or at work"),
        (limits.array_throttle, "{} tasks of an array at once"),
    )


def _gpu(name: str, model: GpuType) -> str:
    parts = _joined(
        (model.memory_gb, "{:g} GB"),
        (model.per_node, "{} a node"),
        (model.cpus, "{} CPUs with each"),
        (model.memory_per_gpu_gb, "{:g} GB of memory with each"),
    )
    return f"`{name}`" + (f" ({parts})" if parts else "")


def _slice(name: str, part: GpuSlice) -> str:
    return f"`{name}`" + (f" ({part.memory_gb:g} GB)" if part.memory_gb else "")


def _asking(profile: Profile) -> str:
    gpus = profile.gpus
    if gpus.form == "none":
        return "not at all: Slurm does not know of them"
    typed = f"{gpus.default_type or 'TYPE'}:N" if gpus.name_type else "N"
    return f"`{GPU_OPTIONS[gpus.form].format(typed)}`"


def _sharing(profile: Profile) -> str:
    gpus = profile.gpus
    if gpus.whole_nodes:
        return "whole nodes"
    if gpus.counts:
        return f"{' or '.join(map(str, gpus.counts))} GPUs a node"
    return "the GPUs that it asks for"


def _memory(profile: Profile) -> str:
    form = profile.memory.form
    if form == "none":
        return "not at all: it comes with the node"
    return f"`{MEMORY_OPTIONS[form]}`{', for a node' * (form == 'per_node')}"


def _scratch(profile: Profile) -> str:
    storage = profile.storage
    purge = f"; deleted after {storage.purge_days} days" if storage.purge_days else ""
    return f"`{storage.scratch}`{purge}" if storage.scratch else ""


def _local(profile: Profile) -> str:
    storage = profile.storage
    made = "; runyard makes and removes it" if storage.local_made_by_us else ""
    more = f"; more of it by `{storage.local_size_option}`" if storage.local_size_option else ""
    return f"`{storage.local}`{made}{more}"


def _quotas(profile: Profile) -> str:
    return _listed(f"{place}: {amount}" for place, amount in profile.storage.quotas.items())


def _internet(profile: Profile) -> str:
    network = profile.network
    text = {"unknown": "not known: `runyard doctor --job` checks it"}.get(
        network.internet, network.internet
    )
    if network.proxy_module:
        lets = f" ({network.proxy_lets})" if network.proxy_lets else ""
        text += f"; module `{network.proxy_module}`{lets}"
    return text


def _cloud(profile: Profile) -> str:
    if profile.network.internet == "unknown":
        return ""
    return {
        "online": "yes",
        "offline": "no; `runyard sync --to` later",
        "relay": "by the first node",
    }[profile.network.wandb]


def _building(profile: Profile) -> str:
    where = {
        "login": "on the login node",
        "job": "in a job of its own",
        "inside": "inside each job",
    }[profile.software.build_where]
    return f"{where}, from the site's own wheels" if profile.software.wheels == "site" else where


def _container(profile: Profile) -> str:
    containers = profile.containers
    if containers.program is None:
        return ""
    return _joined(
        (containers.program, "`{}`"),
        (containers.module, "module `{}`"),
        (containers.pull, "images by `{}`"),
    )


def _variables(profile: Profile) -> str:
    script = profile.script
    always = [f"`{name}={value}`" for name, value in script.variables.items()]
    nodes = [
        f"`{name}={value}` (several nodes)" for name, value in script.multi_node_variables.items()
    ]
    return ", ".join((*always, *nodes))


def _accounting(profile: Profile) -> str:
    return _joined((profile.accounting.database, "{}"), (profile.accounting.usage_command, "`{}`"))


FACTS: tuple[tuple[str, Callable[[Profile], str]], ...] = (
    ("log in", lambda profile: _code(profile.identity.login)),
    ("copy data with", lambda profile: _code(profile.identity.transfer)),
    ("must be given", lambda profile: _reasons(profile, "mandatory")),
    ("left out, and said", lambda profile: _reasons(profile, "forbidden", "ignored")),
    ("may be", _values),
    ("defaults", _defaults),
    (
        "submit from",
        lambda profile: (
            f"scratch only: {profile.submission.reason}"
            if profile.submission.allowed_from == "scratch"
            else "anywhere"
        ),
    ),
    (
        "script",
        lambda profile: f"`{profile.script.interpreter}{' -l' * profile.script.login_shell}`",
    ),
    ("length of a job", _job_length),
    ("besides", _special_lengths),
    ("jobs", _how_many),
    ("GPUs", lambda profile: _listed([_gpu(*item) for item in profile.gpus.types.items()])),
    (
        "parts of GPUs",
        lambda profile: ", ".join(_slice(*item) for item in profile.gpus.slices.items()),
    ),
    ("option for GPUs", _asking),
    ("a job gets", _sharing),
    ("option for memory", _memory),
    ("scratch", _scratch),
    ("local disk of a node", _local),
    ("quotas", _quotas),
    ("jobs cannot write in", lambda profile: _code(profile.storage.read_only)),
    ("internet on nodes", _internet),
    ("W&B's cloud from jobs", _cloud),
    ("environments", lambda profile: _code(profile.software.kinds)),
    ("built", _building),
    ("containers", _container),
    ("variables of jobs", _variables),
    ("modules of jobs", lambda profile: _code(profile.script.modules)),
    (
        "nodes start within",
        lambda profile: (
            short_time(profile.elasticity.start_wait) if profile.elasticity.start_wait else ""
        ),
    ),
    ("accounting", _accounting),
    ("sources", lambda profile: _listed(profile.identity.sources)),
    ("checked", lambda profile: profile.identity.checked or ""),
)
"""Each fact: its name, and the text for a profile; empty if the profile does not say it."""
