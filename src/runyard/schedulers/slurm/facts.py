"""What Slurm tells about itself: release, configuration, partitions, nodes, accounting.

Read tolerantly: fields are found by name, unknown ones are left alone, and what a release does not
tell is None. `sinfo --json` and its like change between releases and are not used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from runyard.clusters.asking import Answer, Ask
from runyard.reading.units import read_whole
from runyard.schedulers.slurm.values import read_fields, read_gres, read_span

_SETTING = re.compile(r"\w[\w\[\]]*")
# A QOS without a PreemptMode of its own has the cluster's.
_CLUSTERS_MODE = (None, "", "CLUSTER")
_OPEN = ("UNLIMITED", "INFINITE", "NONE", "N/A", "(null)", "")


@dataclass(frozen=True)
class Partition:
    name: str
    is_default: bool = False
    is_up: bool = True
    longest: float | None = None
    most_nodes: int | None = None
    memory_per_cpu: int | None = None
    is_exclusive: bool = False
    preempt_mode: str | None = None
    grace: float | None = None
    """How long a preempted job keeps running, where Slurm preempts by partition."""
    accounts: tuple[str, ...] = ()


@dataclass(frozen=True)
class NodeGroup:
    """Nodes of a partition that are alike."""

    partition: str
    nodes: int
    cpus: int
    memory_mb: int
    gpus: Mapping[str, int] = field(default_factory=dict)
    """GPUs of a node by their type; "" where Slurm knows none."""


@dataclass(frozen=True)
class Qos:
    name: str
    longest: float | None = None
    jobs_at_once: int | None = None
    submitted_at_once: int | None = None
    grace: float | None = None
    """How long a preempted job keeps running, where Slurm preempts by QOS."""
    preempt_mode: str | None = None


@dataclass(frozen=True)
class SlurmFacts:
    """What was found, and what could not be, with the commands' own words."""

    version: str | None = None
    config: Mapping[str, str] = field(default_factory=dict)
    partitions: tuple[Partition, ...] = ()
    nodes: tuple[NodeGroup, ...] = ()
    qos: tuple[Qos, ...] = ()
    accounts: tuple[str, ...] = ()
    has_accounting: bool | None = None
    troubles: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_here(self) -> bool:
        return self.version is not None

    @property
    def cluster_name(self) -> str | None:
        return self._setting("ClusterName")

    @property
    def array_size(self) -> int | None:
        return read_whole(self._setting("MaxArraySize"))

    @property
    def counts_memory(self) -> bool | None:
        """Whether memory is something that jobs are given, or a word without effect."""
        chosen = self._setting("SelectTypeParameters")
        return None if chosen is None else "MEMORY" in chosen.upper()

    @property
    def starts_nodes(self) -> float | None:
        """How long a node may take to start, where nodes come and go; else None."""
        if not self._setting("ResumeProgram") or not self._setting("SuspendTime"):
            return None
        seconds = read_whole((self._setting("ResumeTimeout") or "").partition(" ")[0])
        return None if seconds is None else float(seconds)

    @property
    def requeues(self) -> bool | None:
        value = self._setting("JobRequeue")
        return None if value is None else value == "1"

    @property
    def default_partition(self) -> str | None:
        return next((partition.name for partition in self.partitions if partition.is_default), None)

    @property
    def spot_partitions(self) -> tuple[Partition, ...]:
        """Those whose jobs make room for others, after a time in which they can save."""
        if self._preempts_by_qos:
            return ()  # Then Slurm does not read the partitions' GraceTime.
        return tuple(
            partition
            for partition in self.partitions
            if partition.grace and _ends_jobs(partition.preempt_mode)
        )

    @property
    def spot_qos(self) -> tuple[Qos, ...]:
        """The QOSes of such jobs, where Slurm preempts by QOS."""
        if not self._preempts_by_qos:
            return ()
        usual = self._setting("PreemptMode")
        return tuple(
            qos
            for qos in self.qos
            if qos.grace
            and _ends_jobs(usual if qos.preempt_mode in _CLUSTERS_MODE else qos.preempt_mode)
        )

    @property
    def _preempts_by_qos(self) -> bool:
        return self._setting("PreemptType") == "preempt/qos"

    @property
    def gpu_types(self) -> dict[str, int]:
        """Types of GPUs, and how many a node has at most."""
        types: dict[str, int] = {}
        for group in self.nodes:
            for name, count in group.gpus.items():
                types[name] = max(count, types.get(name, 0))
        return types

    def _setting(self, name: str) -> str | None:
        value = self.config.get(name, "")
        return None if value in _OPEN else value


def gather(ask: Ask, user: str) -> SlurmFacts:
    """Ask Slurm. A command that is missing or silent is a trouble, and never an error."""
    version = ask("sinfo", "--version")
    if version.is_missing:
        return SlurmFacts(troubles={"slurm": version.trouble or ""})
    troubles: dict[str, str] = {}

    def answer_of(name: str, *words: str) -> Answer:
        answer = ask(*words)
        if answer.trouble is not None:
            troubles[name] = answer.trouble
        return answer

    config = read_config(answer_of("config", "scontrol", "show", "config").text)
    partitions = answer_of("partitions", "scontrol", "--oneliner", "show", "partition")
    groups = answer_of("nodes", "sinfo", "--noheader", "--format=%P|%D|%c|%m|%G")
    has_accounting = _has_accounting(config)
    qos: tuple[Qos, ...] = ()
    accounts: tuple[str, ...] = ()
    if has_accounting:
        listed = answer_of(
            "qos", "sacctmgr", "-nP", "show", "qos",
            "format=Name,MaxWall,MaxJobsPerUser,MaxSubmitJobsPerUser,GraceTime,PreemptMode",
        )  # fmt: skip
        qos = tuple(read_qos(listed.text))
        own = answer_of(
            "accounts", "sacctmgr", "-nP", "show", "assoc", f"user={user}", "format=Account"
        )
        accounts = tuple(dict.fromkeys(own.text.split()))
    return SlurmFacts(
        version=_version(version, config),
        config=config,
        partitions=tuple(read_partitions(partitions.text)),
        nodes=tuple(read_node_groups(groups.text)),
        qos=qos,
        accounts=accounts,
        has_accounting=has_accounting,
        troubles=troubles,
    )


def _version(answer: Answer, config: Mapping[str, str]) -> str | None:
    match = re.search(r"\d+\.\d+(?:\.\d+)?\S*", answer.text)
    return match[0] if match else config.get("SLURM_VERSION", "unknown")


def _has_accounting(config: Mapping[str, str]) -> bool | None:
    """By the controller's configuration; later releases leave the key out where there is none."""
    if not config:
        return None
    return "slurmdbd" in config.get("AccountingStorageType", "")


def read_config(text: str) -> dict[str, str]:
    """`scontrol show config`: a key and a value a line."""
    pairs = (line.partition("=") for line in text.splitlines())
    return {
        name.strip(): value.strip()
        for name, equals, value in pairs
        if equals and _SETTING.fullmatch(name.strip())
    }


def read_partition_rules(text: str) -> dict[str, dict[str, str]]:
    """`scontrol --oneliner show partition`: the fields of each, by its name."""
    lines = [read_fields(line) for line in text.splitlines()]
    return {line["PartitionName"]: line for line in lines if "PartitionName" in line}


def read_partitions(text: str) -> Iterator[Partition]:
    """`scontrol --oneliner show partition`: one a line."""
    for rules in read_partition_rules(text).values():
        accounts = rules.get("AllowAccounts", "ALL")
        yield Partition(
            name=rules["PartitionName"],
            is_default=rules.get("Default") == "YES",
            is_up=rules.get("State", "UP") == "UP",
            longest=read_span(rules.get("MaxTime")),
            most_nodes=read_whole(rules.get("MaxNodes")),
            memory_per_cpu=read_whole(rules.get("DefMemPerCPU")),
            # 26.05 takes OverSubscribe=EXCLUSIVE and shows Exclusive=NODE instead.
            is_exclusive=rules.get("Exclusive") == "NODE"
            or rules.get("OverSubscribe") == "EXCLUSIVE",
            preempt_mode=rules.get("PreemptMode"),
            grace=float(read_whole(rules.get("GraceTime")) or 0) or None,
            accounts=() if accounts == "ALL" else tuple(accounts.split(",")),
        )


def read_node_groups(text: str) -> Iterator[NodeGroup]:
    """`sinfo --format=%P|%D|%c|%m|%G`: nodes that are alike on one line."""
    for line in text.splitlines():
        parts = line.split("|")
        if len(parts) < 5:
            continue
        nodes, cpus, memory = (read_whole(part.rstrip("+")) or 0 for part in parts[1:4])
        yield NodeGroup(parts[0].rstrip("*"), nodes, cpus, memory, read_gres("|".join(parts[4:])))


def read_qos(text: str) -> Iterator[Qos]:
    """`sacctmgr -nP show qos`; files of `doctor --share` from before have four columns."""
    for line in text.splitlines():
        parts = line.split("|")
        if len(parts) < 4 or not parts[0]:
            continue
        grace, mode = (*parts[4:6], "", "")[:2]
        yield Qos(
            name=parts[0],
            longest=read_span(parts[1]),
            jobs_at_once=read_whole(parts[2]),
            submitted_at_once=read_whole(parts[3]),
            grace=read_span(grace) or None,
            preempt_mode=mode.upper() or None,
        )


def _ends_jobs(preempt_mode: str | None) -> bool:
    """Whether a preempted job ends, and is not only suspended."""
    return not {"REQUEUE", "CANCEL"}.isdisjoint((preempt_mode or "").split(","))
