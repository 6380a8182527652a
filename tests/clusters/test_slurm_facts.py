"""What releases of Slurm print, read.

22.05's texts are recorded from the cluster of these tests. The others cannot be had here: they are
put together after what those releases were seen to print in public job logs and manuals.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from runyard.clusters.asking import USUAL_SECONDS, Answer, asker
from runyard.clusters.findings import Finding
from runyard.clusters.load import SHIPPED, load_profile
from runyard.clusters.place import Recognised
from runyard.schedulers.doctor import Site
from runyard.schedulers.slurm.doctor.checks import check_slurm
from runyard.schedulers.slurm.doctor.draft import draft, draft_name
from runyard.schedulers.slurm.facts import (
    SlurmFacts,
    gather,
    read_node_groups,
    read_partitions,
)
from runyard.schedulers.slurm.values import read_gres

SHOW_QOS = (
    "sacctmgr -nP show qos "
    "format=Name,MaxWall,MaxJobsPerUser,MaxSubmitJobsPerUser,GraceTime,PreemptMode"
)
RECORDED_22_05 = {
    "sinfo --version": "slurm-wlm 22.05.8\n",
    "scontrol show config": (
        "Configuration data as of 2026-11-15T09:41:35\n"
        "AccountingStorageType   = accounting_storage/slurmdbd\n"
        "ClusterName             = disposable\n"
        "JobRequeue              = 1\n"
        "MaxArraySize            = 1001\n"
        "PowerPlugin             = \n"
        "ResumeProgram           = (null)\n"
        "ResumeTimeout           = 60 sec\n"
        "SelectTypeParameters    = CR_CPU_MEMORY\n"
        "SlurmctldHost[0]        = vm(127.0.0.1)\n"
        "SLURM_VERSION           = 22.05.8\n"
        "SuspendTime             = INFINITE\n"
        "\nSlurmctld(primary) at vm is UP\n"
    ),
    "scontrol --oneliner show partition": (
        "PartitionName=main AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL AllocNodes=ALL "
        "Default=YES QoS=N/A DefaultTime=NONE MaxNodes=UNLIMITED MaxTime=UNLIMITED MinNodes=0 "
        "Nodes=n[1-4] OverSubscribe=NO PreemptMode=REQUEUE State=UP TotalCPUs=16 TotalNodes=4 "
        "DefMemPerCPU=2000 MaxMemPerNode=UNLIMITED\n"
        "PartitionName=short AllowGroups=ALL AllowAccounts=ALL Default=NO MaxNodes=UNLIMITED "
        "MaxTime=00:01:00 OverSubscribe=NO State=UP DefMemPerCPU=2000\n"
    ),
    "sinfo --noheader --format=%P|%D|%c|%m|%G": (
        "main*|4|4|8000|gpu:fake:4\nshort|4|4|8000|gpu:fake:4\n"
    ),
    SHOW_QOS: "normal||||00:00:00|cluster\n",
    "sacctmgr -nP show assoc user=me format=Account": "root\n",
}
# As 25.05 has it on a site with MIG, nodes on demand, no memory accounting and no database.
LIKE_25_05 = {
    "sinfo --version": "slurm 25.05.1\n",
    "scontrol show config": (
        "AccountingStorageType   = (null)\n"
        "ClusterName             = parallelcluster\n"
        "JobRequeue              = 0\n"
        "MaxArraySize            = 4000001\n"
        "ResumeProgram           = /opt/slurm/resume\n"
        "ResumeTimeout           = 1800 sec\n"
        "SelectTypeParameters    = CR_CPU\n"
        "SuspendTime             = 600 sec\n"
    ),
    "scontrol --oneliner show partition": (
        "PartitionName=gpu AllowAccounts=lab,class Default=NO MaxNodes=8 MaxTime=2-00:00:00 "
        "OverSubscribe=EXCLUSIVE State=UP\n"
        "PartitionName=old Default=NO MaxTime=1-00:00:00 State=DOWN\n"
    ),
    "sinfo --noheader --format=%P|%D|%c|%m|%G": (
        "gpu|8|96+|1030000+|gpu:h100:2(S:0-1),gpu:h100_1g.10gb:14(S:0,1),nvme:1\n"
        "gpu|1|8|16000|(null)\nbroken line\n"
    ),
}


def answers(texts: Mapping[str, str | Answer]) -> object:
    """A stand-in for Slurm's commands: it answers what is recorded, and knows nothing else."""

    def ask(*words: str, seconds: float = USUAL_SECONDS) -> Answer:
        text = texts.get(" ".join(words))
        if text is None:
            return Answer(trouble=f"{words[0]}: it has no such option")
        return text if isinstance(text, Answer) else Answer(text)

    return ask


def facts_of(texts: Mapping[str, str]) -> SlurmFacts:
    return gather(answers(texts), "me")  # type: ignore[arg-type]


def checks(texts: Mapping[str, str], name: str = "generic") -> dict[str, Finding]:
    profile = load_profile(name, folders=[SHIPPED])
    found = check_slurm(facts_of(texts), profile, Recognised(name, "a test says so"))
    return {one.name: one for one in found}


def test_what_22_05_says() -> None:
    facts = facts_of(RECORDED_22_05)
    assert (facts.version, facts.cluster_name, facts.array_size) == ("22.05.8", "disposable", 1001)
    assert [(one.name, one.longest) for one in facts.partitions] == [("main", None), ("short", 60)]
    assert facts.default_partition == "main"
    assert facts.gpu_types == {"fake": 4}
    assert facts.has_accounting is True
    assert (facts.counts_memory, facts.starts_nodes, facts.requeues) == (True, None, True)
    assert facts.accounts == ("root",)
    assert facts.troubles == {}


def test_what_25_05_says() -> None:
    facts = facts_of(LIKE_25_05)
    assert (facts.version, facts.array_size) == ("25.05.1", 4000001)
    assert facts.gpu_types == {"h100": 2, "h100_1g.10gb": 14}
    assert facts.has_accounting is False
    assert (facts.counts_memory, facts.starts_nodes, facts.requeues) == (False, 1800, False)
    gpu, old = facts.partitions
    assert (gpu.longest, gpu.most_nodes, gpu.is_exclusive) == (172800, 8, True)
    assert gpu.accounts == ("lab", "class")
    assert not old.is_up


@pytest.mark.parametrize(
    ("gres", "gpus"),
    [
        ("(null)", {}),
        ("gpu:4", {"": 4}),
        ("gpu", {"": 1}),
        ("gpu:tesla:2", {"tesla": 2}),
        ("gpu:a100:4(S:0-1)", {"a100": 4}),
        ("gpu:a100:4(S:0,1),shard:a100:16(S:0,1)", {"a100": 4}),
        ("gpu:a100_1g.5gb:7(IDX:0-6),gpu:a100:2", {"a100_1g.5gb": 7, "a100": 2}),
        ("nvme:1,craynetwork:4", {}),
    ],
)
def test_every_way_to_list_gpus(gres: str, gpus: dict[str, int]) -> None:
    assert read_gres(gres) == gpus


def test_lines_that_nobody_knows_are_left_alone() -> None:
    assert list(read_partitions("No partitions in the system\n\n")) == []
    assert list(read_node_groups("a|b\n\n")) == []
    (only,) = read_node_groups("gpu*|2|48+|512000|gpu:a100:4\n")
    assert (only.partition, only.cpus, only.memory_mb) == ("gpu", 48, 512000)


def test_a_good_cluster_has_nothing_to_say_against_it() -> None:
    found = checks(RECORDED_22_05)
    assert {one.state for name, one in found.items() if name != "profile"} == {"ok"}
    assert found["profile"].mend == "`runyard doctor --write` makes a draft of a profile"


def test_each_oddity_is_told_with_its_mend() -> None:
    found = checks(LIKE_25_05)
    assert found["partitions"].state == "warn"
    assert "none is the default" in found["partitions"].says
    assert "old" not in found["partitions"].says
    assert found["memory"].says == "asking for memory has no effect here"
    assert found["accounting"].says.startswith("no database")
    assert found["elastic"].mend == "write elasticity: {start_wait: 30m} into a profile"
    known = checks(LIKE_25_05, "aws-parallelcluster")
    assert known["memory"].state == "ok"


def test_a_profile_that_is_out_of_date_is_told() -> None:
    drift = checks(RECORDED_22_05, "claix-2023")["drift"]
    assert drift.state == "warn"
    assert "a partition c23g, Slurm has none" in drift.says
    assert "GPUs h100, Slurm has fake" in drift.says


def test_without_slurm_it_is_one_line() -> None:
    def ask(*words: str, seconds: float = USUAL_SECONDS) -> Answer:
        return Answer(trouble=f"{words[0]} is not on the path", is_missing=True)

    facts = gather(ask, "me")
    profile = load_profile("generic", folders=[SHIPPED])
    found = list(check_slurm(facts, profile, Recognised("generic", "nothing")))
    assert [(one.name, one.state) for one in found] == [("slurm", "fail"), ("profile", "ok")]


def test_a_controller_that_does_not_answer_is_told_in_its_own_words() -> None:
    def ask(*words: str, seconds: float = USUAL_SECONDS) -> Answer:
        if words == ("sinfo", "--version"):
            return Answer("slurm 23.11.10\n")
        return Answer(trouble="slurm_load_partitions: Unable to contact slurm controller")

    facts = gather(ask, "me")
    profile = load_profile("generic", folders=[SHIPPED])
    found = {one.name: one for one in check_slurm(facts, profile, Recognised("generic", "x"))}
    assert found["slurm"].state == "fail"
    assert "Unable to contact slurm controller" in found["slurm"].says
    assert found["accounting"].state == "skip"


def test_commands_are_asked_with_a_limit_and_never_raise() -> None:
    import os

    ask = asker(os.environ)
    assert ask("sh", "-c", "echo hi").text == "hi\n"
    assert ask("no-such-command-here").is_missing
    assert ask("sh", "-c", "echo oh no >&2; exit 3").trouble == "oh no"
    assert ask("sleep", "60", seconds=0.2).trouble == "sleep said nothing for 0.2 s"


@pytest.mark.parametrize("texts", [RECORDED_22_05, LIKE_25_05], ids=["22.05", "25.05"])
def test_a_draft_can_be_read_and_says_what_was_found(
    texts: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    facts = facts_of(texts)
    name = draft_name(facts, "login1.site.org")
    node = {
        "local": [{"name": "TMPDIR", "path": "/local", "free": 1, "memory": False}],
        "internet": {"reached": [], "proxy": None},
        "programs": ["apptainer", "srun"],
        "gpus": ["NVIDIA H100, 81559, 9.0"],
    }
    folder = tmp_path_factory.mktemp("drafts")
    for answered in (node, None):
        text = draft(facts, Site("login1", [], ["cuda/12.2"], answered))
        (folder / f"{name}.yaml").write_text(text)
        profile = load_profile(name, folders=[folder, SHIPPED])
        assert profile.identity.cluster_names == (facts.cluster_name,)
        assert profile.limits.array_size == facts.array_size
        assert profile.software.cuda_modules == ("cuda/12.2",)
        assert profile.accounting.sacct == ("yes" if facts.has_accounting else "no")
        if answered is not None:
            assert profile.network.internet == "no"
            assert profile.storage.local == "/local/${USER}-${SLURM_JOB_ID}"
            assert profile.containers.program == "apptainer"
    if facts.counts_memory is False:
        assert "memory" in profile.submission.ignored
        assert profile.limits.by_partition["gpu"].longest == 172800
        assert profile.gpus.types["h100"].per_node == 2
        assert profile.elasticity.start_wait == 1800


def test_a_draft_names_partitions_whose_jobs_make_room_for_others(
    tmp_path: Path,
) -> None:
    """With GraceTime: without it, a job that is pushed out has no time to do anything."""
    words = "Default=NO MaxTime=UNLIMITED OverSubscribe=NO State=UP"
    partitions = (
        f"PartitionName=spare GraceTime=300 PreemptMode=REQUEUE {words}\n"
        f"PartitionName=scrap GraceTime=90 PreemptMode=CANCEL {words}\n"
        f"PartitionName=hurry GraceTime=0 PreemptMode=REQUEUE {words}\n"
        f"PartitionName=main GraceTime=60 PreemptMode=OFF {words}\n"
    )
    facts = facts_of({**RECORDED_22_05, "scontrol --oneliner show partition": partitions})
    text = draft(facts, Site("login1", [], [], None))
    (tmp_path / "spot.yaml").write_text(text)
    found = load_profile("spot", folders=[tmp_path, SHIPPED]).elasticity
    assert (found.spot, found.grace) == (("spare", "scrap"), 90)


def test_where_slurm_preempts_by_qos_the_draft_names_those_with_a_grace_time(
    tmp_path: Path,
) -> None:
    """The partitions' GraceTime has no effect there."""
    words = "Default=NO MaxTime=UNLIMITED OverSubscribe=NO State=UP"
    qos = (
        "normal||||00:00:00|cluster\n"
        "spare||||00:05:00|cluster\n"
        "scrap||||00:01:30|cancel\n"
        "paused||||00:02:00|suspend\n"
    )
    answers = {
        **RECORDED_22_05,
        "scontrol show config": RECORDED_22_05["scontrol show config"].replace(
            "\nSuspendTime", "\nPreemptMode = REQUEUE\nPreemptType = preempt/qos\nSuspendTime"
        ),
        "scontrol --oneliner show partition": (
            f"PartitionName=main GraceTime=300 PreemptMode=REQUEUE {words}\n"
        ),
        SHOW_QOS: qos,
    }
    (tmp_path / "spot.yaml").write_text(draft(facts_of(answers), Site("login1", [], [], None)))
    found = load_profile("spot", folders=[tmp_path, SHIPPED]).elasticity
    assert (found.spot, found.spot_qos, found.grace) == ((), ("spare", "scrap"), 90)
    by_partition = facts_of({**answers, "scontrol show config": "PreemptType = none\n"})
    assert by_partition.spot_qos == ()
