"""A profile: what is special about one cluster, as frozen data.

The names are the keys of the YAML files in `profiles/`. Options have the names of
runyard.yaml (`account`, `time`, `memory`, `gpu_type`), or Slurm's long name if it has none there
(`image`). `probe=` names the check of `runyard doctor` that can find the value of a field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from runyard.clusters.environment_kinds import CONTAINER_KINDS, ENVIRONMENT_KINDS
from runyard.reading.kinds import (
    Flag,
    Items,
    Memory,
    Number,
    Span,
    Table,
    Text,
    Variables,
    Whole,
    Word,
)
from runyard.reading.records import Section, section, setting
from runyard.schedulers.gridengine.settings import SiteNames
from runyard.schedulers.slurm.settings import (
    ALWAYS_OPTIONS,
    CLUSTER_NAMES,
    LOCAL_FOLDER,
    Accounting,
)

GPU_FORMS = ("gpus_per_node", "gres", "gpus_per_task", "none")
MEMORY_FORMS = ("per_node", "per_cpu", "per_gpu", "none")


@dataclass(frozen=True)
class Identity:
    """Which cluster it is, and how it is recognised."""

    title: str | None = setting(Text(), "full name")
    hosts: tuple[str, ...] = setting(
        Items(Text("PATTERN")), "host names of its login and compute nodes; * stands for any", ()
    )
    cluster_names: tuple[str, ...] = setting(
        Items(Text("PATTERN")), CLUSTER_NAMES, (), probe="cluster"
    )
    login: tuple[str, ...] = setting(Items(Text("HOST")), "hosts to log in to", ())
    transfer: tuple[str, ...] = setting(Items(Text("HOST")), "hosts to copy data with", ())
    checked: str | None = setting(Text("DATE"), "when the facts were last checked")
    sources: tuple[str, ...] = setting(Items(Text()), "where the facts come from", ())
    notes: tuple[str, ...] = setting(Items(Text()), "what its users should know", ())
    retired: str | None = setting(Text(), "that the cluster is retired, and what replaces it")


@dataclass(frozen=True)
class Submission:
    """What the site demands of a job's options. Users see the reason of each rule."""

    mandatory: Mapping[str, str] = setting(
        Table(Text()), "options that a job must have, each with the reason", {}
    )
    forbidden: Mapping[str, str] = setting(
        Table(Text()), "options that runyard leaves out, each with the reason", {}
    )
    ignored: Mapping[str, str] = setting(
        Table(Text()), "options without effect here, each with the reason", {}
    )
    values: Mapping[str, tuple[str, ...]] = setting(
        Table(Items(Text())), "the allowed values of an option; * matches any text", {}
    )
    defaults: Mapping[str, str] = setting(Variables(), "values of options that you do not set", {})
    always: tuple[str, ...] = setting(Items(Text("OPTION")), ALWAYS_OPTIONS, ())
    allowed_from: str = setting(
        Word("anywhere", "scratch"), "the folders from which jobs may be submitted", "anywhere"
    )
    from_compute_nodes: bool = setting(Flag(), "whether a job may submit jobs", True)
    reason: str | None = setting(Text(), "why jobs may be submitted only from there")


@dataclass(frozen=True)
class Script:
    """What every job script contains."""

    interpreter: str = setting(Text("LINE"), "the first line, without #!", "/bin/bash")
    login_shell: bool = setting(Flag(), "whether the script is run by a login shell", False)
    before: tuple[str, ...] = setting(Items(Text("LINE")), "lines before the program", ())
    after: tuple[str, ...] = setting(
        Items(Text("LINE")), "lines after the program, also if it failed", ()
    )
    modules: tuple[str, ...] = setting(
        Items(Text("MODULE")), "modules to load", (), probe="modules"
    )
    variables: Mapping[str, str] = setting(Variables(), "environment variables of every job", {})
    multi_node_variables: Mapping[str, str] = setting(
        Variables(), "environment variables of jobs with more than one node", {}
    )
    path: tuple[str, ...] = setting(
        Items(Text("FOLDER")),
        "folders to put first into PATH, if Slurm's commands are not in it",
        (),
    )

    @property
    def shell(self) -> str:
        """`bash` or `zsh`: the program's name in the interpreter line."""
        words = self.interpreter.split()
        word = words[1] if words[0].endswith("/env") and len(words) > 1 else words[0]
        return word.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Limit:
    """How long jobs of one partition or QOS may be."""

    shortest: float | None = setting(Span(), "the shortest job")
    longest: float | None = setting(Span(), "the longest job")
    most_nodes: int | None = setting(Whole(1), "the largest number of nodes of a job")
    jobs_at_once: int | None = setting(Whole(1), "jobs of a user that run at once")
    submitted_at_once: int | None = setting(Whole(1), "jobs of a user that wait or run")
    chaining: bool = setting(Flag(), "whether jobs may follow one another", True)


@dataclass(frozen=True)
class Limits(Limit):
    """How long jobs may be, and how many."""

    by_partition: Mapping[str, Limit] = setting(
        Table(Section(Limit)), "the same limits, for one partition", {}, probe="partitions"
    )
    by_qos: Mapping[str, Limit] = setting(
        Table(Section(Limit)), "the same limits, for one QOS", {}, probe="qos"
    )
    test_job: float | None = setting(
        Span(), "jobs up to this length are allowed although they are shorter than the shortest"
    )
    array_size: int = setting(
        Whole(1), "Slurm's MaxArraySize: the largest index of an array plus one", 1001,
        probe="config",
    )  # fmt: skip
    array_throttle: int | None = setting(
        Whole(1), "array tasks that run at once, unless you ask for fewer"
    )
    pause: float = setting(Span(), "time between two submissions", 0.0)


@dataclass(frozen=True)
class GpuType:
    """One model of GPU, and what goes with it on a node."""

    memory_gb: float | None = setting(Number(), "GPU memory, in GB")
    per_node: int | None = setting(Whole(1), "GPUs of a node")
    cpus: int | None = setting(Whole(1), "CPUs that may be asked with each")
    memory_per_gpu_gb: float | None = setting(Number(), "host memory with each, in GB")
    compute_capability: str | None = setting(Text(), "CUDA's compute capability, such as '9.0'")


@dataclass(frozen=True)
class GpuSlice:
    """A part of a GPU (MIG) that can be asked for like a GPU."""

    memory_gb: float | None = setting(Number(), "GPU memory, in GB")
    cpus: int | None = setting(Whole(1), "CPUs that may be asked with each")
    of: str | None = setting(Text("TYPE"), "the type of GPU that it is a part of")


@dataclass(frozen=True)
class Gpus:
    """Which GPUs there are, and how to ask for them."""

    form: str = setting(Word(*GPU_FORMS), "the option that asks for GPUs", "gres", probe="gpus")
    types: Mapping[str, GpuType] = setting(
        Table(Section(GpuType)), "GPU models, by Slurm's name", {}, probe="gpus"
    )
    slices: Mapping[str, GpuSlice] = setting(
        Table(Section(GpuSlice)), "parts of GPUs (MIG), by Slurm's name", {}, probe="gpus"
    )
    default_type: str | None = setting(Text("TYPE"), "the type of GPU if you name none")
    name_type: bool = setting(Flag(), "whether a job always has to name the type", False)
    implicit: Mapping[str, int] = setting(
        Table(Whole(0)),
        "GPUs of a node in partitions where you cannot ask for them; * for any partition",
        {},
    )
    whole_nodes: bool = setting(Flag(), "whether jobs get whole nodes", False)
    counts: tuple[int, ...] = setting(
        Items(Whole(1)),
        "the numbers of GPUs on a node that a job may ask for, if not all are allowed",
        (),
    )
    mps: bool = setting(Flag(), "whether several programs may share a GPU with MPS", True)


@dataclass(frozen=True)
class MemoryRule:
    """How to ask for host memory."""

    form: str = setting(Word(*MEMORY_FORMS), "the option that asks for memory", "per_node")
    default_per_cpu: int | None = setting(
        Memory(), "the memory that Slurm gives with each CPU by default", probe="partitions"
    )
    threads_per_core: int = setting(Whole(1), "hardware threads that Slurm counts as CPUs", 1)


@dataclass(frozen=True)
class Storage:
    """Where data is stored."""

    scratch: str | None = setting(
        Text("PATH"), "the path of the large shared folder; variables are allowed", "${SCRATCH}",
        probe="scratch",
    )  # fmt: skip
    purge_days: int | None = setting(Whole(1), "days after which files there are deleted")
    local: str = setting(
        Text("PATH"), "the folder of a job on the local disk of its node", LOCAL_FOLDER,
        probe="local",
    )  # fmt: skip
    local_made_by_us: bool = setting(
        Flag(), "whether the job has to create and remove that folder itself", False, probe="local"
    )
    local_size_option: str | None = setting(
        Text("OPTION"), "the option that asks for more local disk, such as --tmp"
    )
    shared: tuple[str, ...] = setting(
        Items(Text("PATH")), "folders that login and compute nodes share", (), probe="shared"
    )
    read_only: tuple[str, ...] = setting(
        Items(Text("PATH")), "folders that jobs can read but not write", ()
    )
    quotas: Mapping[str, str] = setting(
        Table(Text()), "storage limits of each folder, in words; `runyard doctor` shows them", {}
    )


@dataclass(frozen=True)
class Network:
    """What compute nodes can reach, and how they reach each other."""

    internet: str = setting(
        Word("yes", "no", "proxy", "unknown"), "whether compute nodes reach the internet",
        "unknown", probe="internet",
    )  # fmt: skip
    proxy_module: str | None = setting(Text("MODULE"), "the module that sets a proxy")
    proxy_lets: str | None = setting(Text(), "what the proxy lets through")
    wandb: str = setting(
        Word("online", "offline", "relay"),
        "how programs in jobs log: online; offline (W&B's cloud is not reached; `runyard sync "
        "--to` sends runs there later); relay (through the job's first node, also to runyard's "
        "server)",
        "online",
    )
    interface: str | None = setting(Text("NAME"), "network interface for collectives")
    address_suffix: str | None = setting(
        Text("SUFFIX"), "the suffix of a node's name on the fast network"
    )
    ports: str | None = setting(Text("LOW-HIGH"), "ports that nodes may use between each other")
    login_address: str | None = setting(
        Text("HOST"), "the login node's name or interface, as compute nodes see it", probe="server"
    )

    @property
    def port_range(self) -> tuple[int, int] | None:
        match = re.fullmatch(r"(\d+)-(\d+)", self.ports or "")
        return (int(match[1]), int(match[2])) if match else None


@dataclass(frozen=True)
class Software:
    """How programs get their packages."""

    kinds: tuple[str, ...] = setting(
        Items(Word(*ENVIRONMENT_KINDS)), "kinds of environments, the best one first",
        ("uv", "venv", "conda", "pixi"),
    )  # fmt: skip
    wheels: str = setting(
        Word("online", "site"), "where wheels come from: the internet, or the site's own", "online"
    )
    build_where: str = setting(
        Word("login", "job", "inside"),
        "where environments are built: on the login node, in a job, or inside each job", "login",
    )  # fmt: skip
    conda_channels: tuple[str, ...] = setting(
        Items(Text("CHANNEL")), "conda's channels, for files that name none", ("conda-forge",)
    )
    conda_root: str | None = setting(
        Text("PATH"), "where conda is installed; variables are allowed"
    )
    cuda_modules: tuple[str, ...] = setting(
        Items(Text("MODULE")), "the CUDA modules that the site has", (), probe="cuda"
    )


@dataclass(frozen=True)
class Containers:
    """How containers are started."""

    program: str | None = setting(
        Word(*CONTAINER_KINDS, also={"singularity": "apptainer"}), "the program that runs images",
        probe="containers",
    )  # fmt: skip
    module: str | None = setting(Text("MODULE"), "the module that provides it")
    gpu_flag: str | None = setting(
        Text("OPTION"), "the option that makes GPUs visible in the container", "--nv"
    )
    mounts: tuple[str, ...] = setting(Items(Text("PATH")), "more folders to mount", ())
    variables: tuple[str, ...] = setting(Items(Text("NAME")), "more variables to pass", ())
    pull: str | None = setting(
        Text("COMMAND"), "the command that brings an image to the site before jobs can use it"
    )


@dataclass(frozen=True)
class Elasticity:
    """Nodes that come and go."""

    start_wait: float = setting(Span(), "how long a node may take to start", 0.0)
    spot: tuple[str, ...] = setting(
        Items(Text("PARTITION")), "partitions whose jobs or nodes may be taken away for others", ()
    )
    spot_qos: tuple[str, ...] = setting(
        Items(Text("QOS")), "QOSes whose jobs may be taken away, where Slurm preempts by QOS", ()
    )
    grace: float | None = setting(Span(), "how long such a job keeps running after its notice")
    requeue: bool = setting(Flag(), "whether jobs may go back to the queue", True)
    chain: str = setting(
        Word("array", "dependency", "requeue"),
        "how the jobs of a chain follow one another: tasks of one array, jobs that wait for one "
        "another, or one job that goes back to the queue",
        "array",
    )


@dataclass(frozen=True)
class Profile:
    """What is special about one cluster. `name` is the name of its file. `files` lists that file
    and the files it inherits from, the most general first."""

    name: str = "generic"
    files: tuple[str, ...] = ()
    identity: Identity = section(Identity, "which cluster it is, and how it is known")
    submission: Submission = section(Submission, "what the site demands of a job's options")
    script: Script = section(Script, "what every job script contains")
    limits: Limits = section(Limits, "how long jobs may be, and how many")
    gpus: Gpus = section(Gpus, "which GPUs there are, and how to ask for them")
    memory: MemoryRule = section(MemoryRule, "how to ask for host memory")
    storage: Storage = section(Storage, "where data is stored")
    network: Network = section(
        Network, "what compute nodes can reach, and how they reach each other"
    )
    software: Software = section(Software, "how programs get their packages")
    containers: Containers = section(Containers, "how containers are started")
    accounting: Accounting = section(Accounting, "where figures of ended jobs come from")
    gridengine: SiteNames = section(SiteNames, "names that a site with Grid Engine has chosen")
    elasticity: Elasticity = section(Elasticity, "nodes that come and go")

    def limit(self, partition: str | None, qos: str | None) -> Limit:
        """The limits for a job: those of the QOS, else of the partition, else of the cluster."""
        places = [
            self.limits.by_qos.get(qos or ""),
            self.limits.by_partition.get(partition or ""),
            self.limits,
        ]
        known = [place for place in places if place is not None]

        def first(name: str) -> object:
            return next(
                (getattr(limit, name) for limit in known if getattr(limit, name) is not None), None
            )

        return Limit(
            **{name: first(name) for name in Limit.__dataclass_fields__ if name != "chaining"},  # type: ignore[arg-type]
            chaining=all(limit.chaining for limit in known),
        )
