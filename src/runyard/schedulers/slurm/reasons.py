"""Why a job waits: Slurm's reasons in plain words, and what to do about each.

Most reasons are built from parts: whose limit (Assoc, QOS), of whom (Grp, Max, PerUser), of what
(Cpu, GRES, Node). Those are read by their parts; the others are a table. An unknown one is quoted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from runyard.schedulers.jobs import Reason

_SUBMIT_ANEW = "cancel it and submit it again with less"
_ASK_SITE = "ask your site's support"

_TABLE: Mapping[str, tuple[str, str]] = {
    "None": ("Slurm has not looked at it yet", ""),
    "WaitingForScheduling": ("Slurm has not looked at it yet", ""),
    "Priority": ("others are before it in the queue; it starts when its turn comes", ""),
    "Resources": ("it is next, and waits until enough is free", ""),
    "Dependency": ("it waits for another job to end", ""),
    "DependencyNeverSatisfied": (
        "the job that it waits for ended in the wrong way",
        "it never starts: cancel it and submit it again",
    ),
    "BeginTime": ("it is not to start before a certain time", ""),
    "Cleaning": ("what is left of its last start is being cleared away", ""),
    "Prolog": ("the site prepares its nodes", ""),
    "JobArrayTaskLimit": (
        "as many of its tasks run as the array lets at once; the next starts when one ends",
        "",
    ),
    "JobHeldUser": ("you hold it back", "`scontrol release JOB` lets it go"),
    "JobHeldAdmin": ("your site holds it back", _ASK_SITE),
    "InactiveLimit": ("it did nothing for too long", ""),
    "Licenses": ("it waits for a licence", ""),
    "Reservation": ("its reservation has not begun", ""),
    "ReservationInvalid": ("its reservation is not valid", "submit it again without it"),
    "ReservationDeleted": ("its reservation was deleted", "submit it again without it"),
    "ReqNodeNotAvail": (
        "a node that it needs is in use, down, or kept for a maintenance",
        "a shorter --time may fit in before a maintenance; naming no nodes helps too",
    ),
    # A sentence, where all nodes that would do are out of service or promised to others.
    "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions": (
        "no node that it could use is in service now: all are down, drained or promised to others",
        "wait, or name another --partition; `sinfo -R` shows why nodes are out of service",
    ),
    "NodeDown": ("a node that it needs is down", "do not name that node, or wait for it"),
    "NodesDown": ("nodes that it needs are down", "do not name these nodes, or wait for them"),
    "PartitionDown": ("its partition takes no jobs now", "wait, or name another --partition"),
    "PartitionInactive": ("its partition starts no jobs now", "wait, or name another --partition"),
    "PartitionNodeLimit": (
        "it asks for more nodes than its partition gives, or they are down",
        "ask for fewer, or name another --partition",
    ),
    "PartitionTimeLimit": (
        "it asks for more time than its partition gives",
        "submit it again with a shorter --time, or in another --partition",
    ),
    "PartitionConfig": (
        "no node of its partition has what it asks for",
        "`runyard clusters partitions` shows what there is",
    ),
    "BadConstraints": (
        "no node has what it asks for",
        "look at constraint, GPU type and memory; `runyard clusters partitions` shows all",
    ),
    "Constraints": ("no node has what it asks for now", ""),
    "SchedDefer": ("it was to start at once, and could not", "submit it again"),
    "PowerNotAvail": ("there is not enough electric power for it now", ""),
    "PowerReserved": ("the electric power is kept for others now", ""),
    "NodeNotAvail": ("a node that it needs is not there now", ""),
    "FedJobLock": ("the clusters agree on where it runs", ""),
    "FrontEndDown": ("the site's front end is down", _ASK_SITE),
    "BurstBufferResources": ("it waits for room in the burst buffer", ""),
    "BurstBufferStageIn": ("its files are being copied in", ""),
    "BurstBufferOperation": ("the burst buffer failed", _ASK_SITE),
    "InvalidAccount": ("its account does not exist", "submit it again with another --account"),
    "InvalidQOS": (
        "its QOS does not exist, or is not for you",
        "submit it again with another --qos",
    ),
    "AccountNotAllowed": (
        "its account may not use this partition",
        "submit it again with another --account or --partition",
    ),
    "QOSNotAllowed": (
        "its QOS may not be used here",
        "submit it again with another --qos or --partition",
    ),
    "AccountingPolicy": (
        "a limit of your account is reached",
        "`runyard clusters usage` shows more",
    ),
    "AssociationJobLimit": ("your account runs as many jobs as it may", ""),
    "AssociationResourceLimit": ("your account uses as much as it may", ""),
    "AssociationTimeLimit": (
        "your account's time is used up, or the job asks for more than there is",
        "`runyard clusters usage` shows what is left",
    ),
    "QOSJobLimit": ("the QOS runs as many jobs as it may", ""),
    "QOSResourceLimit": ("the QOS uses as much as it may", ""),
    "QOSTimeLimit": ("it asks for more time than the QOS gives", "submit it with a shorter --time"),
    "QOSUsageThreshold": (
        "you have used more than your share",
        "it waits until that has passed; `runyard clusters usage` shows more",
    ),
    "MaxMemPerLimit": (
        "it asks for more memory with a CPU or a node than is allowed",
        "ask for less --memory, or for more CPUs with it",
    ),
    "DeadLine": ("it cannot end before its deadline", "submit it again"),
    "JobLaunchFailure": (
        "it could not be started on its node",
        "is its folder there on the nodes? `runyard doctor` looks",
    ),
    "JobHoldMaxRequeue": ("it was requeued too often", "look at its log, then submit it again"),
    "NonZeroExitCode": ("it ended with an error", ""),
    "OutOfMemory": ("it ran out of memory", "`runyard retry --memory +50%`"),
    "RaisedSignal": ("it was ended by a signal", ""),
    "SystemFailure": ("Slurm or a file system failed", _ASK_SITE),
    "TimeLimit": ("its time was up", ""),
}

# AssocGrpGRES, QOSMaxCpuPerUserLimit, MaxGRESPerAccount, QOSMinCpuNotSatisfied ...
_PARTS = re.compile(
    r"(?P<whose>Assoc|QOS)?(?P<how>Grp|Max|Min)"
    r"(?P<what>CPU|Cpu|GRES|Mem|Memory|Node|Jobs?|SubmitJobs?|Wall|WallDuration|Billing|BB|Energy"
    r"|License|Unknown)"
    r"(?P<spent>Minutes|RunMinutes)?(?P<of>PerUser|PerAccount|PerJob|PerNode)?"
    r"(?:Limit|NotSatisfied)?"
)
# By the first letters: one of them, and how much of it there is.
_THINGS = {
    "cpu": ("CPU", "many CPUs"),
    "gres": ("GPU", "many GPUs"),
    "mem": ("memory", "much memory"),
    "node": ("node", "many nodes"),
    "job": ("job", "many jobs"),
    "sub": ("job", "many waiting jobs"),
    "wal": ("time", "much time"),
    "bil": ("billed", "many billed units"),
    "bb": ("burst buffer", "much burst buffer space"),
    "ene": ("energy", "much energy"),
    "lic": ("licence", "many licences"),
    "unk": ("unnamed", "much of something"),
}


def read_reason(text: str | None) -> Reason | None:
    """A reason as Slurm writes it, in plain words; None where it gives none.

    What this has made of one, as text, it reads as well.
    """
    bare = (text or "").strip().strip("()")
    if bare in ("", "None", "N/A", "null"):
        return None
    worded = re.fullmatch(r"([^:]+): (.*)", bare, re.DOTALL)
    if worded is not None and (known := read_reason(worded[1])) is not None:
        return Reason(worded[1], worded[2].removesuffix(f"; {known.mend}"), known.mend)
    # Details follow a comma: ReqNodeNotAvail, UnavailableNodes:n[3-4].
    word, _, more = (bare, "", "") if bare in _TABLE else bare.partition(",")
    word = word.strip()
    if word in _TABLE:
        says, mend = _TABLE[word]
        detail = f" ({more.strip()})" if more.strip() else ""
        return Reason(word, f"{says}{detail}", mend)
    match = _PARTS.fullmatch(word)
    if match is not None:
        return Reason(word, *_limit(match))
    return Reason(bare[:200], "Slurm says no more than that")


def _limit(match: re.Match[str]) -> tuple[str, str]:
    whose = {"Assoc": "your account", "QOS": "the QOS"}.get(match["whose"] or "", "the QOS")
    singular, plural = next(
        names for key, names in _THINGS.items() if match["what"].lower().startswith(key)
    )
    of, spent = match["of"], match["spent"]
    more = f"{singular} hours" if spent else plural.partition(" ")[2]
    if match["how"] == "Min":
        return f"it asks for less than {whose} demands ({more})", "submit it again with more"
    if of in ("PerJob", "PerNode"):
        where = " on a node" if of == "PerNode" else ""
        return f"it asks for more {more}{where} than {whose} gives to a job", _SUBMIT_ANEW
    if spent == "RunMinutes":
        return (f"what runs under {whose} has reserved all the {more} that may be at once; it "
                "starts when jobs end", "")  # fmt: skip
    if spent is not None:
        return f"{whose} has used up its {more}", "`runyard clusters usage` shows what is left"
    if of == "PerUser":
        return (f"you already use as {plural} as {whose} allows; it starts when one of your jobs "
                "ends", "")  # fmt: skip
    who = "your account" if of == "PerAccount" else whose
    return f"{who} already uses as {plural} as it may; it starts when some job of it ends", ""
