"""Slurm's answers without names: of each command, what a profile or a rig can be made from.

What is listed here stays, and everything else goes: a new setting of a site may name anybody.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from runyard.clusters.stand_ins import StandIns
from runyard.schedulers.slurm.facts import read_config, read_partition_rules

_SETTINGS = frozenset({
    "AccountingStorageEnforce", "AccountingStorageTRES", "AccountingStorageType",
    "AccountingStoreFlags", "AuthType", "BatchStartTimeout", "ClusterName", "DefMemPerCPU",
    "DefMemPerNode", "EnforcePartLimits", "GresTypes", "InactiveLimit", "JobAcctGatherFrequency",
    "JobAcctGatherType", "JobContainerType", "JobRequeue", "JobSubmitPlugins", "KillOnBadExit",
    "KillWait", "LaunchParameters", "MaxArraySize", "MaxJobCount", "MaxMemPerCPU", "MaxMemPerNode",
    "MaxStepCount", "MaxTasksPerNode", "MinJobAge", "MpiDefault", "OverTimeLimit",
    "PreemptExemptTime", "PreemptMode", "PreemptType", "PriorityType", "PrivateData",
    "ProctrackType", "PrologFlags", "RequeueExit", "ResumeProgram", "ResumeTimeout",
    "ReturnToService", "SLURM_VERSION", "SchedulerParameters", "SchedulerType", "SelectType",
    "SelectTypeParameters", "SuspendTime", "SuspendTimeout", "SwitchType", "TaskPlugin",
    "TaskPluginParam", "TmpFS", "UnkillableStepTimeout", "WaitTime",
})  # fmt: skip
_RULES = frozenset({
    "PartitionName", "AllowAccounts", "AllowQos", "QoS", "DefMemPerCPU", "DefMemPerNode", "Default",
    "DefaultTime", "Exclusive", "ExclusiveUser", "GraceTime", "Hidden", "JobDefaults", "LLN",
    "MaxCPUsPerNode", "MaxMemPerCPU", "MaxMemPerNode", "MaxNodes", "MaxTime", "MinNodes",
    "OverSubscribe", "OverTimeLimit", "PreemptMode", "PriorityTier", "ReqResv", "RootOnly", "State",
    "TRES", "TotalCPUs", "TotalNodes",
})  # fmt: skip
_KINDS = {"PartitionName": "partition", "AllowAccounts": "account"}
_KINDS |= {"AllowQos": "qos", "QoS": "qos", "ClusterName": "cluster"}

# Machines that commands name when they complain.
_HOSTS = re.compile(r"SlurmctldHost\[\d+\]|AccountingStorage(?:Backup)?Host|SlurmdbdHost")
_RELEASE = re.compile(r"\d+(?:\.\d+)+(?:-\d+(?:rc\d+)?)?")
# What every Slurm may have; a site's own resources, licences and plugins are called as it likes.
_PLAIN = re.compile(
    r"(?:gres/)?(?:gpu|mps|shard)(?:[:=(].*)?|(?:cpu|mem|energy|node|billing|fs/disk|vmem|pages)"
    r"(?:=.*)?|all_partitions|defaults|logging|lua|partition|pbs|require_timelimit|throttle",
    re.IGNORECASE,
)
_OWN_LISTS = ("AccountingStorageTRES", "GresTypes", "JobSubmitPlugins", "TRES")


def without_names(words: Sequence[str], text: str, names: StandIns) -> str:
    """What a command answered; `words` are its own."""
    for beginning, reduce in _COMMANDS.items():
        if " ".join(words).startswith(beginning):
            return reduce(text, names)
    return names.text(text)


def _config(text: str, names: StandIns) -> str:
    settings = read_config(text)
    for name, value in settings.items():
        host = value.partition("(")[0]
        if _HOSTS.fullmatch(name) and host not in ("", "localhost"):
            names.of("host", host)
    kept = {name: value for name, value in settings.items() if name in _SETTINGS}
    return "".join(f"{name} = {_value(name, value, names)}\n" for name, value in kept.items())


def _partitions(text: str, names: StandIns) -> str:
    lines = []
    for rules in read_partition_rules(text).values():
        names.nodes(rules.get("Nodes", "").replace("(null)", ""))
        kept = {name: value for name, value in rules.items() if name in _RULES}
        lines.append(
            " ".join(f"{name}={_value(name, value, names)}" for name, value in kept.items())
        )
    return "".join(f"{line}\n" for line in lines)


def _value(name: str, value: str, names: StandIns) -> str:
    if name in _OWN_LISTS:
        return _plain(value)
    if name == "SLURM_VERSION":
        return _release(value)
    kind = _KINDS.get(name)
    return names.text(value) if kind is None else names.of_all(kind, value)


def _plain(listed: str) -> str:
    """Of a list with commas between, also `gpu:a100:2(IDX:0,1),nvme:1`."""
    parts = re.findall(r"(?:[^,(]|\([^)]*\))+", listed)
    return ",".join(part for part in parts if _PLAIN.fullmatch(part)) or "(null)"


def _release(text: str) -> str:
    match = _RELEASE.search(text)
    return match[0] if match else ""


def _nodes(text: str, names: StandIns) -> str:
    rows = [line.rpartition("|") for line in text.splitlines()]
    plain = "".join(f"{before}{bar}{_plain(gres)}\n" for before, bar, gres in rows)
    return _first_column("partition")(plain, names)


def _first_column(kind: str) -> Callable[[str, StandIns], str]:
    """Of lines with | between: the first says a name, the others numbers."""

    def reduce(text: str, names: StandIns) -> str:
        rows = [line.partition("|") for line in text.splitlines()]
        return "".join(
            f"{names.of(kind, name.rstrip('*'))}{'*' * name.endswith('*')}{bar}{rest}\n"
            for name, bar, rest in rows
        )

    return reduce


_COMMANDS: dict[str, Callable[[str, StandIns], str]] = {
    "scontrol show config": _config,
    "scontrol --oneliner show partition": _partitions,
    "sinfo --noheader": _nodes,
    "sacctmgr -nP show qos": _first_column("qos"),
    "sacctmgr -nP show assoc": _first_column("account"),
    "sinfo --version": lambda text, _: f"slurm {_release(text)}\n",
}
