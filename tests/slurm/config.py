"""The text of Slurm's configuration files, made from what the cluster should be and where it runs.

Pure: nothing here reads the machine or writes a file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ClusterSpec:
    """What the cluster looks like to its users; every node is alike."""

    nodes: int = 4
    cpus: int = 4
    memory_mb: int = 8000
    gpus: int = 4
    gpu_type: str = "fake"
    more_gpu_types: tuple[str, ...] = ()
    """Other types, of which each node has as many."""
    features: tuple[str, ...] = ()
    """What `--constraint` can name; all nodes have it."""
    more_partitions: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    """In place of main, high and short: each a name, and its rules as slurm.conf has them."""
    array_size: int = 1001
    most_jobs: int = 0
    """How many jobs Slurm knows at once, with those that ended a moment ago; 0: its own limit."""
    counts_memory: bool = True
    accounting: bool = True
    enforce: bool = False
    """Whether limits of users hold (`sacctmgr modify user ... set maxsubmitjobs=10`)."""
    elastic: bool = False
    """Whether nodes are off until a job needs one, and then until `ClusterSite.power` is there."""
    preempts_by: str = "partition_prio"
    """Or `qos`: a job makes room for one of a QOS that names its own QOS under `Preempt`."""
    proctrack: str = "linuxproc"
    """Whom Slurm's TERM reaches: all processes of a job, or with `pgid` only those in the script's
    group, as with `cgroup`, which a container seldom lets its user have."""
    kill_wait: int = 2
    """Seconds from TERM to KILL; 30 on most clusters."""

    def __post_init__(self) -> None:
        if min(self.nodes, self.cpus, self.memory_mb) < 1 or self.gpus < 0:
            raise ValueError(f"a cluster needs at least one node, CPU and megabyte: {self}")

    @property
    def node_names(self) -> list[str]:
        return [f"n{number}" for number in range(1, self.nodes + 1)]

    @property
    def gpu_types(self) -> tuple[str, ...]:
        return (self.gpu_type, *self.more_gpu_types) if self.gpus else ()

    @property
    def ports_needed(self) -> int:
        """One for slurmctld, one for slurmdbd, one for each slurmd."""
        return 2 + self.nodes


@dataclass(frozen=True)
class ClusterSite:
    """Where one cluster runs: its folder, its host and user, its block of ports."""

    folder: Path
    host: str
    user: str
    first_port: int

    @property
    def cluster_name(self) -> str:
        """No other cluster of this machine has it, as none has its ports."""
        return f"disposable{self.first_port}"

    @property
    def controller_port(self) -> int:
        return self.first_port

    @property
    def accounting_port(self) -> int:
        return self.first_port + 1

    @property
    def first_node_port(self) -> int:
        return self.first_port + 2

    @property
    def munge_key(self) -> Path:
        return self.folder / "munge.key"

    @property
    def munge_socket(self) -> Path:
        return self.folder / "munge.sock"

    @property
    def database(self) -> Path:
        return self.folder / "mysql"

    @property
    def database_socket(self) -> Path:
        return self.folder / "mysql.sock"

    @property
    def database_made(self) -> Path:
        """SQL that the database server runs before it answers."""
        return self.folder / "make-database.sql"

    @property
    def gpu_devices(self) -> Path:
        return self.folder / "dev"

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def spool(self) -> Path:
        return self.folder / "spool"

    @property
    def work(self) -> Path:
        """Where batch scripts run and leave their output."""
        return self.folder / "work"

    @property
    def logs(self) -> Path:
        return self.folder / "log"

    @property
    def power(self) -> Path:
        """While this file is missing, the nodes of an elastic cluster take their time."""
        return self.folder / "power"

    @property
    def resume_program(self) -> Path:
        return self.folder / "resume"


def slurm_conf(spec: ClusterSpec, site: ClusterSite) -> str:
    """slurm.conf, with all nodes on one host and the partitions main, high and short."""
    sections = [
        _identity(site),
        _processes(spec, site),
        _scheduling(spec),
        *([_power_saving(site)] if spec.elastic else []),
        _accounting(spec, site),
        _nodes(spec, site),
        _partitions(spec),
    ]
    return "\n".join(line for section in sections for line in section) + "\n"


def gres_conf(spec: ClusterSpec, site: ClusterSite) -> str:
    """gres.conf: which device file is which GPU, the same on every node; empty without GPUs."""
    # Without the flag Slurm sets CUDA_VISIBLE_DEVICES only for devices named like NVIDIA's.
    return "".join(
        f"NodeName={_series('n', 1, spec.nodes)} Name=gpu Type={name} "
        f"File={site.gpu_devices}/{_series('gpu', place * spec.gpus, spec.gpus)}"
        " Flags=nvidia_gpu_env\n"
        for place, name in enumerate(spec.gpu_types)
    )


def slurmdbd_conf(site: ClusterSite) -> str:
    """slurmdbd.conf; the database is reached by its socket, through MYSQL_UNIX_PORT."""
    lines = [
        "AuthType=auth/munge",
        f"AuthInfo=socket={site.munge_socket}",
        "DbdHost=localhost",
        "DbdAddr=127.0.0.1",
        f"DbdPort={site.accounting_port}",
        f"SlurmUser={site.user}",
        f"PidFile={site.folder}/slurmdbd.pid",
        "StorageType=accounting_storage/mysql",
        "StorageHost=localhost",
        "StorageUser=root",
    ]
    return "\n".join(lines) + "\n"


def _identity(site: ClusterSite) -> list[str]:
    return [
        f"ClusterName={site.cluster_name}",
        f"SlurmctldHost={site.host}(127.0.0.1)",
        f"SlurmctldPort={site.controller_port}",
        f"SlurmUser={site.user}",
        f"SlurmdUser={site.user}",
        "AuthType=auth/munge",
        # A requeued job is held back for the credential's lifetime: 120 s if not told otherwise.
        f"AuthInfo=socket={site.munge_socket},cred_expire=5",
    ]


def _processes(spec: ClusterSpec, site: ClusterSite) -> list[str]:
    return [
        f"StateSaveLocation={site.state}",
        f"SlurmdSpoolDir={site.spool}/%n",
        f"SlurmctldPidFile={site.folder}/slurmctld.pid",
        f"SlurmdPidFile={site.folder}/%n.pid",
        # slurmstepd writes here too, and has no other place for its words.
        f"SlurmdLogFile={site.logs}/%n.slurmd",
        f"ProctrackType=proctrack/{spec.proctrack}",
        "TaskPlugin=task/none",
        "MpiDefault=none",
        # The nodes may claim more CPUs and memory than the host has.
        "SlurmdParameters=config_overrides",
        "ReturnToService=2",
        f"KillWait={spec.kill_wait}",
        # Finished jobs stay visible to scontrol for as long as a test session may last.
        f"MinJobAge={2 if spec.most_jobs else 3600}",
        *([f"MaxJobCount={spec.most_jobs}"] if spec.most_jobs else []),
    ]


def _scheduling(spec: ClusterSpec) -> list[str]:
    return [
        "SelectType=select/cons_tres",
        f"SelectTypeParameters={'CR_CPU_Memory' if spec.counts_memory else 'CR_CPU'}",
        f"MaxArraySize={spec.array_size}",
        "SchedulerType=sched/backfill",
        # sched_interval: no event tells that a requeued job's waiting time is over; 60 s if untold.
        "SchedulerParameters=bf_interval=1,sched_interval=1,sched_min_interval=0",
        f"PreemptType=preempt/{spec.preempts_by}",
        "PreemptMode=REQUEUE",
    ]


def _power_saving(site: ClusterSite) -> list[str]:
    return [
        f"ResumeProgram={site.resume_program}",
        "ResumeTimeout=300",
        # Nodes are never sent away for want of work: a test takes them away itself.
        "SuspendProgram=/bin/true",
        "SuspendTime=86400",
        # What it sounds like is what it undoes: nodes that are off are shown.
        "PrivateData=cloud",
    ]


def resume_script(site: ClusterSite, path: str) -> str:
    """What the controller calls to start nodes; it has no environment of its own.

    -b: a node that did not boot since it was asked for counts as one that has not come yet.
    """
    return f"""\
#!/bin/sh
export SLURM_CONF={site.folder}/slurm.conf PATH={path}
while [ ! -e {site.power} ]; do sleep 0.1; done
# --fork: a node is no child of this program, with which it might end.
for node in $(scontrol show hostnames "$1"); do
  setsid --fork slurmd -D -b -N "$node" </dev/null >/dev/null 2>&1
done
"""


def _accounting(spec: ClusterSpec, site: ClusterSite) -> list[str]:
    # A second is the least; Slurm's own 30 s would see nothing of a test's programs.
    usage = ["JobAcctGatherType=jobacct_gather/linux", "JobAcctGatherFrequency=1"]
    enforced = "limits" * spec.enforce or "qos" * (spec.preempts_by == "qos")
    if not spec.accounting:
        return [*usage, "AccountingStorageType=accounting_storage/none"]
    return [
        *usage,
        "AccountingStorageType=accounting_storage/slurmdbd",
        "AccountingStorageHost=localhost",
        f"AccountingStoragePort={site.accounting_port}",
        # With a munge socket of one's own, accounting calls need it named here once more.
        f"AccountingStoragePass={site.munge_socket}",
        # As sites do who want to see later what a job was: all that a secret could be found in.
        "AccountingStoreFlags=job_script,job_env,job_comment",
        *(["AccountingStorageTRES=gres/gpu"] if spec.gpus else []),
        *([f"AccountingStorageEnforce={enforced}"] if enforced else []),
    ]


def _nodes(spec: ClusterSpec, site: ClusterSite) -> list[str]:
    kinds = ",".join(f"gpu:{name}:{spec.gpus}" for name in spec.gpu_types)
    gpus = f" Gres={kinds}" if kinds else ""
    features = f" Features={','.join(spec.features)}" if spec.features else ""
    ports = _series("", site.first_node_port, spec.nodes)
    return [
        *(["GresTypes=gpu"] if spec.gpus else []),
        f"NodeName={_series('n', 1, spec.nodes)} NodeHostname={site.host} NodeAddr=127.0.0.1"
        f" Port={ports} CPUs={spec.cpus} RealMemory={spec.memory_mb}{gpus}{features}"
        f" State={'CLOUD' if spec.elastic else 'UNKNOWN'}",
    ]


def _partitions(spec: ClusterSpec) -> list[str]:
    nodes = _series("n", 1, spec.nodes)
    # A job that names no memory would otherwise take a whole node's.
    shared = f"Nodes={nodes} DefMemPerCPU={max(1, spec.memory_mb // spec.cpus)} State=UP"
    if spec.partitions:
        return [f"PartitionName={line} Nodes={nodes}" for line in spec.partitions]
    return [
        f"PartitionName=main {shared} Default=YES MaxTime=INFINITE PriorityTier=1",
        f"PartitionName=high {shared} MaxTime=INFINITE PriorityTier=10 PreemptMode=OFF",
        f"PartitionName=short {shared} MaxTime=1 PriorityTier=1",
        *(f"PartitionName={name} {shared}" for name in spec.more_partitions),
    ]


def _series(prefix: str, first: int, count: int) -> str:
    """Slurm's way to write n1, n2, n3: n[1-3]."""
    return f"{prefix}{first}" if count == 1 else f"{prefix}[{first}-{first + count - 1}]"
