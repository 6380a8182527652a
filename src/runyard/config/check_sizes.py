"""Whether a request fits: the GPUs that a cluster has, and how long and many its jobs may be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from runyard.clusters.profile import GpuType, Profile
from runyard.config.request import Request
from runyard.reading.problems import closest, listed
from runyard.reading.units import short_memory, short_time

_MIB_PER_GB = 1024


@dataclass(frozen=True)
class Refusal:
    """Why a site would not take a request: what is wrong, what to do, and which setting it is
    about (`resources.time`)."""

    what: str
    mend: str
    path: str


def check_gpus(request: Request) -> tuple[list[Refusal], list[str]]:
    """What speaks against the GPUs that are asked for, and what to know about them."""
    count, name = request.resources.gpus or 0, request.resources.gpu_type
    gpus = request.profile.gpus
    if not count:
        return [], []
    if gpus.form == "none":
        return [], [_implicit_note(request)]
    refusals: list[Refusal] = []
    known = [*gpus.types, *gpus.slices]
    if name is None and gpus.name_type:
        refusals.append(
            Refusal(
                f"the type of GPU is missing: {request.profile.name} wants it named",
                f"write gpu_type: {listed(known) if known else '…'} under resources, or --gpu-type",
                "resources.gpu_type",
            )
        )
    if name is not None and known and name not in known:
        near = closest(name, known)
        refusals.append(
            Refusal(
                f"there is no GPU of type {name} ({request.origin('resources.gpu_type')})",
                f"did you mean {near}?" if near else f"write {listed(known)}",
                "resources.gpu_type",
            )
        )
        return refusals, []
    model = gpus.types.get(name or "")
    if model is None:
        return refusals, []
    refusals += _too_many(request, count, name or "", model)
    return refusals, ([] if refusals else _sharing_notes(request, count, name or "", model))


def _implicit_note(request: Request) -> str:
    profile = request.profile
    have = profile.gpus.implicit
    partition = request.resources.partition or "*"
    count = have.get(partition, have.get("*", 0))
    if count:
        return (
            f"GPUs cannot be asked for on {profile.name}; nodes of {partition} have {count} anyway"
        )
    return (
        f"GPUs cannot be asked for on {profile.name}, and its profile does not say that nodes of "
        f"{partition} have any"
    )


def _too_many(request: Request, count: int, name: str, model: GpuType) -> Iterator[Refusal]:
    profile, origin = request.profile, request.origin("resources.gpus")
    if model.per_node is not None and count > model.per_node:
        nodes = -(-count // model.per_node)
        yield Refusal(
            f"{count} GPUs a node ({origin}) are more than a node with {name} has: "
            f"{model.per_node}",
            f"write gpus: {model.per_node} and nodes: {nodes}",
            "resources.gpus",
        )
    elif profile.gpus.counts and count not in profile.gpus.counts:
        counts = [str(count) for count in profile.gpus.counts]
        yield Refusal(
            f"{count} GPUs a node ({origin}) cannot be had on {profile.name}",
            f"write {listed(counts)}",
            "resources.gpus",
        )
    cpus = _cpus(request)
    if model.per_node and model.cpus and cpus > model.per_node * model.cpus:
        yield Refusal(
            f"{cpus} CPUs a node ({request.origin('resources.cpus')}) are more than a node with "
            f"{name} has: {model.per_node * model.cpus}",
            f"write cpus: {model.cpus * count}, which go with {count} GPUs",
            "resources.cpus",
        )


def _sharing_notes(request: Request, count: int, name: str, model: GpuType) -> list[str]:
    notes = []
    cpus, memory = _cpus(request), request.resources.memory
    whole = request.profile.gpus.whole_nodes
    if whole and model.per_node and count < model.per_node:
        notes.append(
            f"jobs get whole nodes on {request.profile.name}: {model.per_node - count} of "
            f"{model.per_node} GPUs would be paid for and idle"
        )
    if not whole and model.cpus and cpus > model.cpus * count:
        notes.append(
            f"{cpus} CPUs with {count} {name} are more than their share ({model.cpus} each): it "
            f"waits longer and keeps others from the GPUs"
        )
    share = model.memory_per_gpu_gb
    if not whole and share and memory and memory > share * _MIB_PER_GB * count:
        notes.append(
            f"{short_memory(memory)} with {count} {name} are more than their share "
            f"({share:g}G each): it waits longer and keeps others from the GPUs"
        )
    return notes


def _cpus(request: Request) -> int:
    return (request.resources.cpus or 1) * (request.resources.tasks_per_node or 1)


def check_limits(request: Request) -> Iterator[Refusal]:
    """What speaks against the length and the number of jobs."""
    need, profile = request.resources, request.profile
    limit = profile.limit(need.partition, need.qos)
    where = _where(profile, need.partition, need.qos)
    origin = request.origin("resources.time")
    if need.time is not None and limit.longest is not None and need.time > limit.longest:
        links = -int(-need.time // limit.longest)
        yield Refusal(
            f"{short_time(need.time)} ({origin}) are longer than jobs may be{where}: "
            f"{short_time(limit.longest)}",
            f"write time: {short_time(limit.longest)}; work that takes longer goes on in the next "
            f"job: agents: {{chain: {links}}}",
            "resources.time",
        )
    test = profile.limits.test_job or 0
    if need.time is not None and limit.shortest is not None and test < need.time < limit.shortest:
        tests = f" (other than tests of up to {short_time(test)})" if test else ""
        yield Refusal(
            f"{short_time(need.time)} ({origin}) are shorter than jobs may be{where}: "
            f"{short_time(limit.shortest)}{tests}",
            f"write time: {short_time(limit.shortest)}; an agent takes trials until it is over",
            "resources.time",
        )
    if need.nodes is not None and limit.most_nodes is not None and need.nodes > limit.most_nodes:
        yield Refusal(
            f"{need.nodes} nodes ({request.origin('resources.nodes')}) are more than a job may "
            f"have{where}: {limit.most_nodes}",
            f"write nodes: {limit.most_nodes}",
            "resources.nodes",
        )
    if (request.agents.chain or 1) > 1 and not limit.chaining:
        yield Refusal(
            f"jobs may not follow one another{where} ({request.origin('agents.chain')})",
            "choose another QOS or partition, or remove chain",
            "agents.chain",
        )


def _where(profile: Profile, partition: str | None, qos: str | None) -> str:
    if qos in profile.limits.by_qos:
        return f" with the QOS {qos}"
    if partition in profile.limits.by_partition:
        return f" in the partition {partition}"
    return ""
