"""A draft of a profile for a cluster that nobody has described: what was found, as its file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from runyard.clusters.site_checks import CONTAINER_PROGRAMS
from runyard.reading.units import short_time
from runyard.schedulers.doctor import Site
from runyard.schedulers.slurm.facts import SlurmFacts


def draft_name(facts: SlurmFacts, host: str) -> str:
    """A file's name for it: Slurm's name of the cluster, else the host's without its number."""
    name = facts.cluster_name or re.sub(r"[-_]?\d+$", "", host.split(".")[0])
    return re.sub(r"[^\w.-]+", "-", name).strip("-.").lower() or "cluster"


def draft(facts: SlurmFacts, site: Site) -> str:
    """The text of the profile. What only a person can know stands there as a comment."""
    answers = site.node if isinstance(site.node, dict) else None
    blocks = [
        _head(facts, site.host, site.date),
        "\n".join(_submission(facts)),
        "\n".join(_limits(facts)),
        "\n".join(_gpus(facts, answers)),
        "\n".join(_memory(facts)),
        "\n".join(_storage(answers)),
        "\n".join(_network(answers)),
        "\n".join(_software(answers, site.containers, site.cuda)),
        "\n".join(_accounting(facts)),
        "\n".join(_elasticity(facts)),
    ]
    return "\n".join(block for block in blocks if block) + "\n"


def _head(facts: SlurmFacts, host: str, date: str) -> str:
    names = [facts.cluster_name] if facts.cluster_name else []
    pattern = re.sub(r"\d+$", "*", host.split(".")[0])
    return "\n".join(
        [
            f"# A draft by `runyard doctor --write`, of {date}. Look at it, and keep what is true;",
            "# docs/clusters.md tells what else can stand here.",
            "inherits: generic",
            "identity:",
            f"  title: {_quoted(facts.cluster_name or host)}",
            f"  hosts: [{_quoted(pattern)}]",
            f"  cluster_names: [{', '.join(_quoted(name) for name in names)}]",
            f"  checked: {_quoted(date)}",
            f"  sources: [{_quoted(f'runyard doctor on {host}, Slurm {facts.version}')}]",
        ]
    )


def _submission(facts: SlurmFacts) -> Iterator[str]:
    lines = []
    if facts.counts_memory is False:
        lines.append("  ignored: {memory: Slurm does not count memory on this cluster}")
    if facts.partitions and facts.default_partition is None:
        lines.append("  mandatory: {partition: Slurm has no default partition}")
    if lines:
        yield "submission:"
        yield from lines
    else:
        yield "# submission:"
        yield "#   mandatory: {account: jobs are charged to a project}"


def _limits(facts: SlurmFacts) -> Iterator[str]:
    yield "limits:"
    if facts.array_size is not None:
        yield f"  array_size: {max(1, facts.array_size)}"
    limited = [
        partition for partition in facts.partitions if partition.longest or partition.most_nodes
    ]
    if limited:
        yield "  by_partition:"
        for partition in limited:
            parts = [f"longest: {short_time(partition.longest)}"] if partition.longest else []
            parts += [f"most_nodes: {partition.most_nodes}"] if partition.most_nodes else []
            yield f"    {_quoted(partition.name)}: {{{', '.join(parts)}}}"
    bounded = [qos for qos in facts.qos if qos.longest or qos.jobs_at_once or qos.submitted_at_once]
    if bounded:
        yield "  by_qos:"
        for qos in bounded:
            parts = [f"longest: {short_time(qos.longest)}"] if qos.longest else []
            parts += [f"jobs_at_once: {qos.jobs_at_once}"] if qos.jobs_at_once else []
            parts += (
                [f"submitted_at_once: {qos.submitted_at_once}"] if qos.submitted_at_once else []
            )
            yield f"    {_quoted(qos.name)}: {{{', '.join(parts)}}}"
    yield "  # shortest: 1h"


def _gpus(facts: SlurmFacts, answers: Mapping[str, Any] | None) -> Iterator[str]:
    types = {name: count for name, count in facts.gpu_types.items() if name and count}
    if not types:
        return
    yield "gpus:"
    yield "  form: gres"
    yield "  types:"
    for name, count in types.items():
        cpus = _cpus_each(facts, name, count)
        parts = [f"per_node: {count}"] + ([f"cpus: {cpus}"] if cpus else [])
        memory = _gpu_memory(answers) if len(types) == 1 else None
        parts += [f"memory_gb: {memory}"] if memory else []
        yield f"    {_quoted(name)}: {{{', '.join(parts)}}}"
    if all(group.gpus for group in facts.nodes) and any(
        partition.is_exclusive for partition in facts.partitions
    ):
        yield "  whole_nodes: true"


def _cpus_each(facts: SlurmFacts, name: str, count: int) -> int | None:
    cpus = [group.cpus for group in facts.nodes if group.gpus.get(name) == count and group.cpus]
    return max(1, min(cpus) // count) if cpus else None


def _gpu_memory(answers: Mapping[str, Any] | None) -> int | None:
    lines = (answers or {}).get("gpus") or []
    match = re.search(r",\s*(\d+)", lines[0]) if lines else None
    return round(int(match[1]) / 1024) if match else None


def _memory(facts: SlurmFacts) -> Iterator[str]:
    share = next(
        (partition.memory_per_cpu for partition in facts.partitions if partition.memory_per_cpu),
        None,
    )
    if share and facts.counts_memory:
        yield "memory:"
        yield f"  default_per_cpu: {share}M"


def _storage(answers: Mapping[str, Any] | None) -> Iterator[str]:
    local = (answers or {}).get("local")
    if not isinstance(local, list) or not local:
        yield "# storage:"
        yield "#   scratch: /scratch/${USER}"
        return
    best = local[0]
    yield "storage:"
    if best["name"] == "SLURM_TMPDIR":
        yield "  local: ${SLURM_TMPDIR}"
    else:
        yield f"  local: {_quoted(best['path'] + '/${USER}-${SLURM_JOB_ID}')}"
        yield "  local_made_by_us: true"


def _network(answers: Mapping[str, Any] | None) -> Iterator[str]:
    reached = ((answers or {}).get("internet") or {}).get("reached")
    if reached is None:
        yield "# network:"
        yield "#   internet: unknown    # `runyard doctor --job --write` finds it out"
        return
    yield "network:"
    yield f"  internet: {'yes' if reached else 'no'}"
    yield f"  wandb: {'online' if reached else 'offline'}"


def _software(
    answers: Mapping[str, Any] | None, containers: list[str], cuda: list[str]
) -> Iterator[str]:
    there = (answers or {}).get("programs") or []
    kinds = [CONTAINER_PROGRAMS[name] for name in there if name in CONTAINER_PROGRAMS]
    kinds = list(dict.fromkeys([*kinds, *containers]))
    if cuda:
        yield "software:"
        yield f"  cuda_modules: [{', '.join(_quoted(name) for name in cuda)}]"
    if kinds:
        yield "containers:"
        yield f"  program: {kinds[0]}"


def _accounting(facts: SlurmFacts) -> Iterator[str]:
    if facts.has_accounting is not None:
        yield "accounting:"
        yield f"  sacct: {'yes' if facts.has_accounting else 'no'}"


def _elasticity(facts: SlurmFacts) -> Iterator[str]:
    lines = []
    if facts.starts_nodes:
        lines.append(f"  start_wait: {short_time(facts.starts_nodes)}")
    for key, spot in (("spot", facts.spot_partitions), ("spot_qos", facts.spot_qos)):
        if spot:
            lines.append(f"  {key}: [{', '.join(_quoted(each.name) for each in spot)}]")
            lines.append(f"  grace: {short_time(min(each.grace or 0.0 for each in spot))}")
    if facts.requeues is False:
        lines.append("  requeue: false")
    if lines:
        yield "elasticity:"
        yield from lines


def _quoted(text: str) -> str:
    if re.fullmatch(r"[A-Za-z][\w./+-]*", text) and text.lower() not in _WORDS:
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


_WORDS = ("yes", "no", "on", "off", "true", "false", "null", "y", "n")
