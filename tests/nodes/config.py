"""What a rig of separate nodes is made of, and the files that its daemons read."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

CONTROL_GROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Plan:
    """What the rig is made of."""

    nodes: int = 2
    logins: int = 1
    gpus: int = 4
    locks: str = "far"
    """`far`: a lock holds on all hosts. `near`: it ends at the host."""
    system: Path = Path("/")
    """A Debian with another release of Slurm (tests/slurm/releases.py), or this machine's."""

    @property
    def hosts(self) -> dict[str, str]:
        """Name -> address."""
        logins = ["login", *(f"login{number}" for number in range(2, self.logins + 1))]
        addresses = {"controller": "10.77.0.1"}
        addresses |= {name: f"10.77.0.{number}" for number, name in enumerate(logins, start=2)}
        return addresses | {f"n{one}": f"10.77.0.{10 + one}" for one in range(1, self.nodes + 1)}


def has_control_groups() -> bool:
    """Whether Slurm's cgroup/v1 can fence devices here."""
    devices = CONTROL_GROUPS / "devices"
    return devices.is_dir() and os.access(devices, os.W_OK)


def write_files(plan: Plan, folder: Path) -> None:
    """Into `etc` of the rig's folder, which each host has as /etc/slurm."""
    etc = folder / "etc"
    lines = ["127.0.0.1 localhost", *(f"{where} {name}" for name, where in plan.hosts.items())]
    (etc / "hosts").write_text("\n".join(lines) + "\n")
    (etc / "munge.key").write_bytes(secrets.token_bytes(128))
    (etc / "slurm.conf").write_text(_slurm_conf(plan, folder))
    (etc / "gres.conf").write_text(
        f"NodeName=n[1-{plan.nodes}] Name=gpu Type=fake File=/dev/nvidia[0-{plan.gpus - 1}]\n"
    )
    (etc / "cgroup.conf").write_text(
        "CgroupPlugin=cgroup/v1\nConstrainDevices=yes\nConstrainRAMSpace=yes\n"
        "ConstrainSwapSpace=no\nConstrainCores=no\n"
    )


def _slurm_conf(plan: Plan, folder: Path) -> str:
    groups = has_control_groups()
    nodes = f"n[1-{plan.nodes}]"
    return f"""\
ClusterName=nodes
SlurmctldHost=controller
SlurmUser=root
AuthInfo=cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile={folder}/log/slurmctld
SlurmdLogFile={folder}/log/%h.slurmd
ProctrackType=proctrack/{"cgroup" if groups else "linuxproc"}
TaskPlugin=task/{"cgroup" if groups else "none"}
PrologFlags=Contain
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=5
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerParameters=bf_interval=2,sched_interval=2,sched_min_interval=0
SlurmdParameters=config_overrides
SlurmdTimeout=20
MessageTimeout=10
ReturnToService=2
KillWait=5
MinJobAge=3600
GresTypes=gpu
NodeName={nodes} CPUs=4 RealMemory=4000 Gres=gpu:fake:{plan.gpus} State=UNKNOWN
PartitionName=main Nodes={nodes} Default=YES MaxTime=INFINITE DefMemPerCPU=500 State=UP
"""
