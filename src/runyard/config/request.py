"""What the user asks for: one typed request, as runyard.yaml, flags and profile give it.

The sections are those of runyard.yaml. Each field says its kind, its meaning and its options
(`flags=`); from these come the reading of the file, the command lines and the JSON Schema. Every
command that can submit loads this module, and not that of profiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from runyard.clusters.environment_kinds import ENVIRONMENT_KINDS
from runyard.reading.kinds import (
    Flag,
    Items,
    Memory,
    Number,
    Span,
    Text,
    Variables,
    VariableText,
    Whole,
    Word,
)
from runyard.reading.records import setting
from runyard.schedulers.slurm.settings import EXTRA_FLAG, EXTRA_OPTIONS

if TYPE_CHECKING:
    from runyard.clusters.profile import Profile

JOB_TYPES = ("standard", "sweep", "distributed")
AGENT_FORMS = ("array", "nodes", "jobs")
MAIL_EVENTS = (
    "NONE", "BEGIN", "END", "FAIL", "REQUEUE", "ALL", "INVALID_DEPEND", "STAGE_OUT", "TIME_LIMIT",
    "TIME_LIMIT_90", "TIME_LIMIT_80", "TIME_LIMIT_50", "ARRAY_TASKS",
)  # fmt: skip


def _any_cluster() -> Profile:
    from runyard.clusters.profile import Profile

    return Profile()


@dataclass(frozen=True)
class Resources:
    """What each agent gets, which is each task of an array. None: the profile's default."""

    gpus: int | None = setting(
        Whole(0), "GPUs on each node", flags=("-g", "--gpus", "--gpus-per-node")
    )
    gpu_type: str | None = setting(Text("TYPE"), "the model of GPU", flags=("-G", "--gpu-type"))
    cpus: int | None = setting(
        Whole(1),
        "CPUs of each task, for all programs in it together",
        flags=("-c", "--cpus", "--cpu", "--cpus-per-task"),
    )
    memory: int | None = setting(
        Memory(), "memory on each node (16G; 0: all of it)", flags=("--memory", "--mem")
    )
    memory_per_gpu: int | None = setting(
        Memory(), "memory for each GPU, instead of memory", flags=("-m", "--mem-per-gpu")
    )
    time: float | None = setting(
        Span(), "how long the job may take (30m, 2h, 1-12:00:00)", flags=("-t", "--time"),
        shared=True,
    )  # fmt: skip
    nodes: int | None = setting(
        Whole(1), "nodes", flags=("-n", "--nodes", "--num-nodes", "--num_nodes", "--nnodes")
    )
    tasks_per_node: int | None = setting(
        Whole(1), "processes that srun starts on a node",
        flags=("--tasks-per-node", "--ntasks-per-node"),
    )  # fmt: skip
    partition: str | None = setting(
        Text("NAME"), "the partition to run in", flags=("-p", "--partition")
    )
    account: str | None = setting(Text("NAME"), "who pays", flags=("-a", "--account"))
    qos: str | None = setting(Text("NAME"), "quality of service", flags=("--qos",))
    constraint: str | None = setting(
        Text("FEATURES"), "features that nodes must have", flags=("--constraint",)
    )
    reservation: str | None = setting(
        Text("NAME"), "a reservation to run in", flags=("--reservation",)
    )
    exclude: tuple[str, ...] = setting(
        Items(Text("NODE")), "nodes not to run on", (), flags=("--exclude",)
    )
    mail: tuple[str, ...] = setting(
        Items(Word(*MAIL_EVENTS)), "when to send a mail (END, FAIL, ALL)", (),
        flags=("--mail", "--mail-type"),
    )  # fmt: skip
    mail_to: str | None = setting(
        Text("ADDRESS"), "the address for mails", flags=("--mail-to", "--mail-user")
    )
    extra: tuple[str, ...] = setting(Items(Text("OPTION")), EXTRA_OPTIONS, (), flags=(EXTRA_FLAG,))


@dataclass(frozen=True)
class Environment:
    """Where the program's packages come from."""

    kind: str = setting(
        Word(*ENVIRONMENT_KINDS, also={"singularity": "apptainer"}),
        "what kind of environment", "none", flags=("--environment",),
    )  # fmt: skip
    name: str | None = setting(Text("NAME"), "its name (conda, pixi)", flags=("--env-name",))
    path: str | None = setting(
        Text("FOLDER"), "its folder (venv, uv, conda, pixi)", flags=("--env-path",)
    )
    image: str | None = setting(
        Text("IMAGE"),
        "the container's image",
        flags=("-s", "--container", "--singularity-container"),
    )
    workdir: str | None = setting(
        Text("FOLDER"), "the folder inside the container that is writable", flags=("--workdir",)
    )
    mounts: tuple[str, ...] = setting(
        Items(Text("PATH")), "folders to mount into the container (FROM or FROM:TO)", (),
        flags=("--mount",),
    )  # fmt: skip
    modules: tuple[str, ...] = setting(
        Items(Text("MODULE")), "modules to load first", (), flags=("--module",)
    )
    variables: Mapping[str, str] = setting(
        Variables(),
        "variables for the program, expanded on the node",
        {},
        flags=("--variable",),
    )
    before: tuple[str, ...] = setting(
        Items(Text("LINE")), "lines of shell before the program", (), flags=("--before",)
    )
    build: bool = setting(
        Flag(), "whether to build it from the project's files if it does not exist", False,
        flags=("--build",),
    )  # fmt: skip


@dataclass(frozen=True)
class Agents:
    """How many agents work on a sweep, and in which form of job."""

    count: int | None = setting(
        Whole(1),
        "agents, which take trials (array tasks, nodes or jobs)",
        flags=("--agents",),
        shared=True,
    )
    at_once: int | None = setting(Whole(1), "how many of them run at once", flags=("--at-once",))
    per_gpu: int | str | None = setting(
        Whole(1, words=("auto",)),
        "trials that share a GPU, or auto",
        flags=("--per-gpu",),
        shared=True,
    )
    mps: str | None = setting(
        Word("auto", "on", "off"), "NVIDIA's MPS for trials that share a GPU", flags=("--mps",),
        shared=True,
    )  # fmt: skip
    form: str = setting(
        Word(*AGENT_FORMS), "one array, the nodes of one job, or a job each", "array",
        flags=("--form",),
    )  # fmt: skip
    trials_each: int | None = setting(
        Whole(1), "trials that an agent takes before it ends", flags=("--trials-each",)
    )
    chain: int | None = setting(
        Whole(1), "jobs that follow one another for the same work", flags=("--chain",)
    )


@dataclass(frozen=True)
class Staging:
    """What travels between scratch and the node's own disk."""

    data: tuple[str, ...] = setting(
        Items(Text("PATH")), "what to copy to the node, below the project's scratch folder", (),
        flags=("-d", "--data"),
    )  # fmt: skip
    results: tuple[str, ...] = setting(
        Items(Text("PATH")), "what to copy back at the end", (), flags=("--results",)
    )


@dataclass(frozen=True)
class Tracking:
    """Where wandb's calls go."""

    server: str = setting(
        Text("WHERE"),
        "embedded (runyard's own), cloud (W&B's), or a server's URL",
        "embedded",
        flags=("--tracking",), shared=True,
    )  # fmt: skip
    entity: str | None = setting(Text("NAME"), "user or team", flags=("--entity",), shared=True)
    project: str | None = setting(Text("NAME"), "project", flags=("--project",), shared=True)
    mode: str | None = setting(
        Word("online", "offline", "relay"),
        "how nodes reach the server: online (the default), offline (they record to disk, and "
        "runs come in at the end), or relay (through the first node; also if the profile says so)",
        flags=("--tracking-mode",),
    )  # fmt: skip
    key: str | None = setting(
        Text("NAME"), "with another server: the key's name in keys.json", flags=("--key",),
        shared=True,
    )  # fmt: skip


@dataclass(frozen=True)
class Checkpoints:
    """How an interrupted program continues."""

    grace: float | None = setting(
        Span(), "how long before the job's end programs are told to save", flags=("--grace",),
        shared=True,
    )  # fmt: skip


@dataclass(frozen=True)
class Gauge:
    """How long programs are measured, and how much more than was measured is asked for."""

    time: float = setting(Span(), "how long `runyard gauge` measures a program, at most", 300.0)
    steps: int | None = setting(
        Whole(1), "steps of a whole run, if the program does not report them with `train.progress`"
    )
    by: tuple[str, ...] = setting(
        Items(Text("OPTION")),
        "options of the program whose values make kinds of experiments, such as algorithm",
        (),
    )
    time_margin: float = setting(
        Number(), "extra time to ask for, as a share of the estimated time", 0.25
    )
    memory_margin: float = setting(Number(), "extra memory to ask for, as a share of the peak", 0.2)
    gpu_memory_margin: float = setting(
        Number(), "share of a GPU's memory that stays free when programs share it", 0.1
    )


@dataclass(frozen=True)
class Rung:
    """One rung of the ladder that `runyard rehearse` climbs: the program, made small."""

    add: tuple[str, ...] = setting(
        Items(VariableText()), "words that are added to the command, such as [--samples, 1]", ()
    )
    metric: str | None = setting(
        Text("NAME"), "what must improve (default: the first logged metric with loss in its name)"
    )
    below: float | None = setting(Number(), "it passes when the metric falls below this")
    above: float | None = setting(Number(), "it passes when the metric rises above this")
    falls_to: float = setting(
        Number(),
        "without below and above: the share of its first value that the metric must fall to",
        0.1,
    )
    time: float = setting(Span(), "how long it may take", 120.0)


@dataclass(frozen=True)
class Request:
    """All that is asked for. `origins` says of each setting who wrote it: file and line, an option,
    or the profile; its keys are paths such as `resources.time`."""

    name: str | None = None
    project_name: str = "project"
    folder: Path = field(default_factory=Path)
    """The project's root: the folder of runyard.yaml, or the one the user stands in."""
    command: tuple[str, ...] | None = None
    sweep_file: str | None = None
    sweep_id: str | None = None
    job_type: str = "standard"
    distributed: str | None = None
    resources: Resources = field(default_factory=Resources)
    environment: Environment = field(default_factory=Environment)
    agents: Agents = field(default_factory=Agents)
    staging: Staging = field(default_factory=Staging)
    tracking: Tracking = field(default_factory=Tracking)
    checkpoints: Checkpoints = field(default_factory=Checkpoints)
    gauge: Gauge = field(default_factory=Gauge)
    rehearse: Mapping[str, Rung] = field(default_factory=dict)
    profile: Profile = field(default_factory=_any_cluster)
    origins: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    """What the user should know of how the request came about."""

    def origin(self, path: str) -> str:
        """Who set it: `runyard.yaml:12`, `--time 2h`, `the profile narval`."""
        return self.origins.get(path, f"the profile {self.profile.name}")
