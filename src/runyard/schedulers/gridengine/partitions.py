"""Grid Engine's cluster queues as partitions, and its limits: `qhost`, `qconf`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

from runyard.reading.units import read_seconds, read_whole
from runyard.schedulers.gridengine.commands import ask, ask_xml
from runyard.schedulers.partitions import Count, Partition

# Letters of a queue's state on a host that takes no jobs: unknown, disabled, suspended, error.
_AWAY = frozenset("udDsSCEco")
_MEBIBYTES = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2}


@dataclass
class _Queue:
    """What the hosts of a cluster queue have."""

    nodes: Count = field(default_factory=Count)
    slots: Count = field(default_factory=Count)
    gpus: Count = field(default_factory=Count)
    memory: list[int] = field(default_factory=list)


def list_queues(environ: Mapping[str, str]) -> list[Partition]:
    """The cluster queues. None is the default: a job that names no queue may run in each."""
    what = "Grid Engine does not tell what queues there are"
    hosts = ask_xml(["qhost", "-q", "-F", "gpu", "-xml"], environ, what)
    answer = ask(["qconf", "-sq", "*"], environ=environ)
    if not answer.is_good:
        raise answer.refused(what)
    limits = read_limits(answer.output)
    queues = read_queues(hosts)
    return [
        Partition(
            name,
            nodes=queue.nodes,
            cpus=queue.slots,
            gpus={"gpu": queue.gpus} if queue.gpus.total else {},
            memory=(min(queue.memory, default=0), max(queue.memory, default=0)),
            longest=limits.get(name),
            state="UP" if queue.nodes.total else "DOWN",
        )
        for name, queue in sorted(queues.items())
    ]


def array_size(environ: Mapping[str, str]) -> int | None:
    """The first index that a task cannot have; None where there is no limit."""
    answer = ask(["qconf", "-sconf"], environ=environ, patience=5.0)
    match = re.search(r"^max_aj_tasks\s+(\d+)", answer.output, re.MULTILINE)
    most = read_whole(match[1]) if match else None
    return most + 1 if most else None


def read_queues(answer: Element) -> dict[str, _Queue]:
    """What `qhost -q -F gpu -xml` printed, by cluster queue."""
    queues: dict[str, _Queue] = {}
    for host in answer.iter("host"):
        memory = _mebibytes(_value(host, "hostvalue", "mem_total"))
        gpus = read_whole(_value(host, "resourcevalue", "gpu").partition(".")[0]) or 0
        for queue in host.findall("queue"):
            name = queue.get("name") or ""
            slots = read_whole(_value(queue, "queuevalue", "slots")) or 0
            used = read_whole(_value(queue, "queuevalue", "slots_used")) or 0
            is_away = bool(set(_value(queue, "queuevalue", "state_string")) & _AWAY)
            total = queues.setdefault(name, _Queue())
            total.nodes += Count(int(not used and not is_away), 1)
            total.slots += Count(0 if is_away else max(0, slots - used), slots)
            # `qhost` says what is left of them, and not how many there are.
            total.gpus += Count(0 if is_away else gpus, gpus)
            total.memory.append(memory)
    return queues


def read_limits(text: str) -> dict[str, float | None]:
    """Of `qconf -sq`: how long a job may run, by queue."""
    limits: dict[str, float | None] = {}
    name = ""
    for line in text.splitlines():
        key, _, value = line.partition(" ")
        if key == "qname":
            name = value.strip()
        elif key == "h_rt" and name:
            # INFINITY, or 24:00:00 with other values for some hosts behind a comma.
            limits[name] = read_seconds(value.strip().partition(",")[0])
    return limits


def _value(element: Element, kind: str, name: str) -> str:
    for value in element.findall(kind):
        if value.get("name") == name:
            return (value.text or "").strip()
    return ""


def _mebibytes(text: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT])", text)
    return int(float(match[1]) * _MEBIBYTES[match[2]]) if match else 0
