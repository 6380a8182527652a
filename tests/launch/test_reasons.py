"""Why a job waits, in plain words."""

from __future__ import annotations

import itertools

import pytest

from runyard.schedulers.slurm.reasons import read_reason

_THINGS = ("BB", "Cpu", "Energy", "GRES", "License", "Mem", "Memory", "Node", "Unknown", "Billing")
# Slurm's own list (src/common/job_state_reason.c), put together from its parts.
BUILT = [
    *map("".join, itertools.product(
        ("AssocGrp", "QOSGrp"), (*_THINGS, "CPU"), ("", "Limit", "Minutes", "RunMinutes")
    )),
    *map("".join, itertools.product(
        ("AssocMax", "QOSMax"), _THINGS, ("PerJob", "PerNode", "MinutesPerJob", "PerJobLimit")
    )),
    *(f"QOSMax{thing}PerUser" for thing in _THINGS),
    *(f"Max{thing}PerAccount" for thing in (*_THINGS, "Jobs", "SubmitJobs")),
    *(f"QOSMin{thing}" for thing in _THINGS),
    "QOSMinCpuNotSatisfied", "QOSGrpCPUMinutesLimit", "QOSGrpCPURunMinutesLimit",
    "QOSGrpJobsLimit", "QOSGrpSubmitJobsLimit", "QOSGrpWallLimit", "QOSMaxWallDurationPerJobLimit",
    "QOSMaxCpuPerUserLimit", "QOSMaxJobsPerUserLimit", "QOSMaxNodePerUserLimit",
    "QOSMaxSubmitJobPerUserLimit", "AssocGrpJobsLimit", "AssocGrpSubmitJobsLimit",
    "AssocGrpWallLimit", "AssocMaxJobsLimit", "AssocMaxWallDurationPerJobLimit",
    "AssocMaxSubmitJobLimit", "AssocMaxCpuMinutesPerJobLimit",
]  # fmt: skip
SINGLE = [
    "Prolog", "Priority", "Dependency", "Resources", "PartitionNodeLimit", "PartitionTimeLimit",
    "PartitionDown", "PartitionInactive", "JobHeldAdmin", "JobHeldUser", "BeginTime", "Licenses",
    "AssociationJobLimit", "AssociationResourceLimit", "AssociationTimeLimit", "Reservation",
    "ReqNodeNotAvail", "FrontEndDown", "SchedDefer", "NodeDown", "BadConstraints", "SystemFailure",
    "JobLaunchFailure", "NonZeroExitCode", "RaisedSignal", "TimeLimit", "InactiveLimit",
    "InvalidAccount", "InvalidQOS", "QOSUsageThreshold", "QOSJobLimit", "QOSResourceLimit",
    "QOSTimeLimit", "Cleaning", "QOSNotAllowed", "AccountNotAllowed", "DependencyNeverSatisfied",
    "JobHoldMaxRequeue", "JobArrayTaskLimit", "BurstBufferResources", "BurstBufferStageIn",
    "BurstBufferOperation", "PowerNotAvail", "PowerReserved", "DeadLine", "PartitionConfig",
    "AccountingPolicy", "FedJobLock", "OutOfMemory", "MaxMemPerLimit", "ReservationDeleted",
    "ReservationInvalid", "Constraints",
]  # fmt: skip


@pytest.mark.parametrize("word", [*SINGLE, *BUILT])
def test_every_reason_of_slurms_list_is_explained(word: str) -> None:
    reason = read_reason(word)
    assert reason is not None
    assert reason.word == word
    assert "Slurm says no more" not in reason.says


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("QOSMaxGRESPerUser",
         "you already use as many GPUs as the QOS allows; it starts when one of your jobs ends"),
        ("QOSMaxMemoryPerUser",
         "you already use as much memory as the QOS allows; it starts when one of your jobs ends"),
        ("AssocGrpGRES",
         "your account already uses as many GPUs as it may; it starts when some job of it ends"),
        ("AssocGrpCPUMinutesLimit", "your account has used up its CPU hours"),
        ("AssocMaxWallDurationPerJobLimit",
         "it asks for more time than your account gives to a job"),
        ("QOSMaxCpuPerNode", "it asks for more CPUs on a node than the QOS gives to a job"),
        ("MaxGRESPerAccount",
         "your account already uses as many GPUs as it may; it starts when some job of it ends"),
        ("QOSMinGRES", "it asks for less than the QOS demands (GPUs)"),
    ],
)  # fmt: skip
def test_limits_are_told_by_their_parts(word: str, says: str) -> None:
    reason = read_reason(word)
    assert reason is not None
    assert reason.says == says


@pytest.mark.parametrize("word", ["PartitionTimeLimit", "DependencyNeverSatisfied", "QOSMinGRES"])
def test_what_does_not_pass_by_waiting_says_what_to_do(word: str) -> None:
    reason = read_reason(word)
    assert reason is not None
    assert reason.is_stuck
    assert str(reason).startswith(f"{word}: ")
    assert str(reason).endswith(reason.mend)


@pytest.mark.parametrize("word", ["Priority", "Resources", "QOSMaxGRESPerUser", "BeginTime"])
def test_what_passes_by_waiting_asks_for_nothing(word: str) -> None:
    reason = read_reason(f"({word})")
    assert reason is not None
    assert not reason.is_stuck


def test_details_are_kept() -> None:
    reason = read_reason("ReqNodeNotAvail, UnavailableNodes:n[3-4]")
    assert reason is not None
    assert reason.word == "ReqNodeNotAvail"
    assert "UnavailableNodes:n[3-4]" in reason.says


@pytest.mark.parametrize(
    "text",
    ["Priority", "PartitionTimeLimit", "QOSMaxGRESPerUser", "PhaseOfTheMoon",
     "ReqNodeNotAvail, UnavailableNodes:n[3-4]", "a sentence, of which nothing is known",
     "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"],
)  # fmt: skip
def test_what_was_made_of_a_reason_can_be_read_again(text: str) -> None:
    reason = read_reason(text)
    assert read_reason(str(reason)) == reason


def test_an_unknown_reason_is_quoted() -> None:
    reason = read_reason("PhaseOfTheMoon")
    assert reason is not None
    assert str(reason).startswith("PhaseOfTheMoon: ")
    assert not reason.is_stuck


@pytest.mark.parametrize("text", ["", None, "None", "(None)", "N/A", "(null)"])
def test_no_reason(text: str | None) -> None:
    assert read_reason(text) is None
