"""What profiles say of their clusters, as tables for the documentation.

Facts on which several clusters agree stand in one table; the others have a column for each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from runyard.clusters.profile import GpuSlice, GpuType, Limit, Profile
from runyard.reading.units import short_time
from runyard.schedulers.slurm.settings import GPU_OPTIONS, MEMORY_OPTIONS

# A page says between which lines its tables stand, and of which profiles they are.
_PLACE = re.compile(r"(<!-- facts: ([\w -]+) -->\n).*?(<!-- end of facts -->)", re.DOTALL)
_SILENT = "-"


def with_facts(page: str, load: Callable[[str], Profile]) -> str:
    """A page with its tables of facts made anew."""
    return _PLACE.sub(
        lambda found: (
            f"{found[1]}\n{facts_tables([load(name) for name in found[2].split()])}\n\n{found[3]}"
        ),
        page,
    )


def facts_tables(profiles: Sequence[Profile]) -> str:
    """One table of a single profile; of several, what they share and then what differs."""
    rows = [(title, [tell(one) for one in profiles]) for title, tell in FACTS]
    rows = [(title, cells) for title, cells in rows if any(cells)]
    same = [(title, cells[:1]) for title, cells in rows if len(set(cells)) == 1]
    different = [(title, cells) for title, cells in rows if len(set(cells)) > 1]
    names = [f"`{one.name}`" for one in profiles]
    tables = [_table(", ".join(names) if len(names) == 1 else "all of them", same)] if same else []
    if different:
        tables.append(_table(" | ".join(names), different))
    return "\n\n".join(tables)


def _table(heads: str, rows: Sequence[tuple[str, Sequence[str]]]) -> str:
    columns = heads.count("|") + 2
    lines = [f"| | {heads} |", f"| {' | '.join(['---'] * columns)} |"]
    for title, cells in rows:
        told = " | ".join(cell.replace("|", "\\|") or _SILENT for cell in cells)
        lines.append(f"| {title} | {told} |")
    return "\n".join(lines)


def _listed(parts: Iterator[str] | Sequence[str]) -> str:
    return "; ".join(parts)


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
    told = _lengths(profile.limits)
    test = profile.limits.test_job
    return f"{told}; tests up to {short_time(test)}" if told and test else told


def _special_lengths(profile: Profile) -> str:
    """Limits of single partitions and QOS."""
    found = [("partition", profile.limits.by_partition), ("QOS", profile.limits.by_qos)]
    parts = []
    for what, limits in found:
        for name, limit in limits.items():
            rest = [f"{limit.most_nodes} nodes at most"] if limit.most_nodes else []
            rest += [] if limit.chaining else ["no chains"]
            parts.append(f"{what} `{name}` " + ", ".join([_lengths(limit), *rest]))
    return _listed(parts)


def _how_many(profile: Profile) -> str:
    limits = profile.limits
    parts = [f"{limits.jobs_at_once} at work"] if limits.jobs_at_once else []
    parts += [f"{limits.submitted_at_once} waiting or at work"] if limits.submitted_at_once else []
    parts += [f"{limits.array_throttle} tasks of an array at once"] if limits.array_throttle else []
    return ", ".join(parts)


def _gpu(name: str, model: GpuType) -> str:
    parts = [f"{model.memory_gb:g} GB"] if model.memory_gb else []
    parts += [f"{model.per_node} a node"] if model.per_node else []
    parts += [f"{model.cpus} CPUs with each"] if model.cpus else []
    parts += (
        [f"{model.memory_per_gpu_gb:g} GB of memory with each"] if model.memory_per_gpu_gb else []
    )
    return f"`{name}`" + (f" ({', '.join(parts)})" if parts else "")


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
    told = {"unknown": "not known: `runyard doctor --job` looks"}.get(
        network.internet, network.internet
    )
    if network.proxy_module:
        lets = f" ({network.proxy_lets})" if network.proxy_lets else ""
        told += f"; module `{network.proxy_module}`{lets}"
    return told


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
    one = profile.containers
    if one.program is None:
        return ""
    parts = [f"`{one.program}`"]
    parts += [f"module `{one.module}`"] if one.module else []
    parts += [f"images by `{one.pull}`"] if one.pull else []
    return ", ".join(parts)


def _variables(profile: Profile) -> str:
    script = profile.script
    always = [f"`{name}={value}`" for name, value in script.variables.items()]
    nodes = [
        f"`{name}={value}` (several nodes)" for name, value in script.multi_node_variables.items()
    ]
    return ", ".join((*always, *nodes))


def _accounting(profile: Profile) -> str:
    usage = profile.accounting.usage_command
    return ", ".join(filter(None, (profile.accounting.database, f"`{usage}`" if usage else "")))


FACTS: tuple[tuple[str, Callable[[Profile], str]], ...] = (
    ("log in", lambda one: _code(one.identity.login)),
    ("copy data with", lambda one: _code(one.identity.transfer)),
    ("must be given", lambda one: _reasons(one, "mandatory")),
    ("left out, and said", lambda one: _reasons(one, "forbidden", "ignored")),
    ("may be", _values),
    ("where nobody says", _defaults),
    (
        "submit from",
        lambda one: (
            f"scratch only: {one.submission.reason}"
            if one.submission.allowed_from == "scratch"
            else "anywhere"
        ),
    ),
    ("script", lambda one: f"`{one.script.interpreter}{' -l' * one.script.login_shell}`"),
    ("length of a job", _job_length),
    ("besides", _special_lengths),
    ("jobs", _how_many),
    ("GPUs", lambda one: _listed([_gpu(*item) for item in one.gpus.types.items()])),
    ("parts of GPUs", lambda one: ", ".join(_slice(*item) for item in one.gpus.slices.items())),
    ("GPUs are asked for", _asking),
    ("a job gets", _sharing),
    ("memory is asked for", _memory),
    ("scratch", _scratch),
    ("node's own disk", _local),
    ("quotas", _quotas),
    ("jobs cannot write in", lambda one: _code(one.storage.read_only)),
    ("internet on nodes", _internet),
    ("W&B's cloud from jobs", _cloud),
    ("environments", lambda one: _code(one.software.kinds)),
    ("built", _building),
    ("containers", _container),
    ("variables of jobs", _variables),
    ("modules of jobs", lambda one: _code(one.script.modules)),
    (
        "nodes start within",
        lambda one: short_time(one.elasticity.start_wait) if one.elasticity.start_wait else "",
    ),
    ("accounting", _accounting),
    ("where this is from", lambda one: _listed(one.identity.sources)),
    ("looked at", lambda one: one.identity.checked or ""),
)
"""Each fact: what it is called, and how a profile tells it; empty where it says nothing."""
