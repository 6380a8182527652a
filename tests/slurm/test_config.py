"""The configuration files as text; no Slurm needed."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from .config import ClusterSite, ClusterSpec, gres_conf, slurm_conf, slurmdbd_conf

SPEC = ClusterSpec(nodes=2, cpus=4, memory_mb=8000, gpus=2)
SITE = ClusterSite(folder=Path("/tmp/s"), host="box", user="ada", first_port=20000)

SLURM_CONF = """\
ClusterName=disposable20000
SlurmctldHost=box(127.0.0.1)
SlurmctldPort=20000
SlurmUser=ada
SlurmdUser=ada
AuthType=auth/munge
AuthInfo=socket=/tmp/s/munge.sock,cred_expire=5
StateSaveLocation=/tmp/s/state
SlurmdSpoolDir=/tmp/s/spool/%n
SlurmctldPidFile=/tmp/s/slurmctld.pid
SlurmdPidFile=/tmp/s/%n.pid
SlurmdLogFile=/tmp/s/log/%n.slurmd
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
MinJobAge=3600
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
MaxArraySize=1001
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=1,sched_min_interval=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStoragePort=20001
AccountingStoragePass=/tmp/s/munge.sock
AccountingStoreFlags=job_script,job_env,job_comment
AccountingStorageTRES=gres/gpu
GresTypes=gpu
NodeName=n[1-2] NodeHostname=box NodeAddr=127.0.0.1 Port=[20002-20003] CPUs=4 RealMemory=8000 \
Gres=gpu:fake:2 State=UNKNOWN
PartitionName=main Nodes=n[1-2] DefMemPerCPU=2000 State=UP Default=YES MaxTime=INFINITE \
PriorityTier=1
PartitionName=high Nodes=n[1-2] DefMemPerCPU=2000 State=UP MaxTime=INFINITE PriorityTier=10 \
PreemptMode=OFF
PartitionName=short Nodes=n[1-2] DefMemPerCPU=2000 State=UP MaxTime=1 PriorityTier=1
"""


def test_slurm_conf() -> None:
    assert slurm_conf(SPEC, SITE) == SLURM_CONF


def test_gres_conf_names_a_device_for_each_gpu() -> None:
    assert gres_conf(SPEC, SITE) == (
        "NodeName=n[1-2] Name=gpu Type=fake File=/tmp/s/dev/gpu[0-1] Flags=nvidia_gpu_env\n"
    )


def test_slurmdbd_listens_where_slurm_conf_looks_for_it() -> None:
    text = slurmdbd_conf(SITE)
    assert "DbdPort=20001\n" in text
    assert "AuthInfo=socket=/tmp/s/munge.sock\n" in text


def test_without_accounting_nothing_is_stored() -> None:
    text = slurm_conf(dataclasses.replace(SPEC, accounting=False), SITE)
    assert "AccountingStorageType=accounting_storage/none\n" in text
    assert "20001" not in text


def test_a_single_node_without_gpus_is_written_without_ranges() -> None:
    bare = dataclasses.replace(SPEC, nodes=1, gpus=0)
    text = slurm_conf(bare, SITE)
    assert "NodeName=n1 NodeHostname=box NodeAddr=127.0.0.1 Port=20002 " in text
    assert "gpu" not in text.lower()
    assert gres_conf(bare, SITE) == ""


def test_a_cluster_has_at_least_one_node() -> None:
    with pytest.raises(ValueError, match="at least one node"):
        ClusterSpec(nodes=0)
