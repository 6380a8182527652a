"""A plan: everything a submission is, as data, before anything is sent or made.

`plan` is pure: the same request, profile and places give the same plan. `script.script` makes the
job's text of it, `submitting.submit` sends that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runyard.client.wandb_server import other_server
from runyard.errors import ConfigError
from runyard.grace import usual_grace
from runyard.launch.chains import Chain, plan_chain
from runyard.launch.environments import Wrapping
from runyard.rank_forms import ONE_A_NODE
from runyard.schedulers.header_request import HeaderRequest
from runyard.schedulers.jobs import Header
from runyard.schedulers.resources import Ruled, follow_rules
from runyard.schedulers.script_words import ScriptWords

if TYPE_CHECKING:
    from runyard.clusters.profile import Profile
    from runyard.config.request import Request
    from runyard.schedulers.protocol import Scheduler

_START = "import sys; sys.path.insert(0, {0}); from runyard.node.{1} import main; sys.exit(main())"
# Isolated and without site-packages: nothing of the node's side needs them, and it starts in half
# the files.
_LIGHT = ("-I", "-S", "-c")
# Ways to start ranks that need one task a node, and start the node's processes by themselves.
_SECRET_NAMES = ("API_KEY", "APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD")


@dataclass(frozen=True)
class Interpreter:
    """runyard's own Python, as compute nodes find it."""

    python: str
    source: str
    """The folder that holds the package."""

    def words(self, module: str) -> list[str]:
        """What starts a module of the node's side."""
        start = _START.format(json.dumps(self.source, ensure_ascii=False), module)
        return [self.python, *_LIGHT, start]


@dataclass(frozen=True)
class Places:
    """Where a job finds things; all on storage that the nodes share."""

    home: Path
    """The state folder."""
    job: Path
    """The submission's own folder: script, job.json, logs."""
    work: Path
    """Where the programs run: in the snapshot of the code, or in the project itself."""
    source: Path
    """The root of the code that they run."""
    project: Path
    """The project's own root, to which what programs leave in the snapshot is brought."""
    scratch: Path | None = None
    """The large shared folder; None where the cluster has none."""
    manifest: Path | None = None
    """Of the snapshot, where programs run in one."""
    python_path: Path | None = None
    """Packages of the snapshot that an editable installation would look for in the project."""


@dataclass(frozen=True)
class Work:
    """What the agents of a job are to do."""

    sweep: int | None
    """The sweep's key; None in a plan that is only shown."""
    slots: int = 1
    trials: int | None = None
    """How many there are to run; None where the sweep has no end of its own."""
    kind: str = "sweep"


@dataclass(frozen=True)
class Plan:
    """One submission: `agents` agents of one sweep, in one of three forms."""

    name: str
    form: str
    agents: int
    at_once: int | None
    header: Header
    scheduler: Scheduler
    places: Places
    runyard: Interpreter
    profile: Profile
    wrapping: Wrapping
    project_name: str
    exp_name: str
    grace: float
    modules: tuple[str, ...]
    variables: Mapping[str, str]
    before: tuple[str, ...]
    job: Mapping[str, Any]
    """What the agent is told, in job.json."""
    notes: tuple[str, ...] = ()
    """What was left out or changed, and why: for the user."""
    asked: Mapping[str, Any] = field(default_factory=dict)
    chain: Chain | None = None
    environment: Mapping[str, Any] = field(default_factory=dict)
    """In what programs run, for whoever looks at the job later."""
    is_distributed: bool = False
    """Whether a trial is several processes."""

    @property
    def words(self) -> ScriptWords:
        return self.scheduler.words

    @property
    def log_pattern(self) -> str:
        """With %A for an array's job, %a for its task, %j for a job and %N for its node."""
        return f"{self.logs}/{self.log_prefix}{self.log_number('%A_%a', '%j', '%N')}.log"

    def log_number(self, task: str, job: str, node: str) -> str:
        """What a log is told apart by: an array's task, or a job; where a trial is several
        processes, also the node that leads them."""
        if self.form == "array":
            return task
        return f"{job}-{node}" if self.is_distributed and self.form == "jobs" else job

    @property
    def logs(self) -> Path:
        if self.places.scratch is None:
            return self.places.job / "logs"
        return self.places.scratch / self.project_name / "hpc_outputs"

    @property
    def log_prefix(self) -> str:
        return "" if self.places.scratch is None else f"{self.name}-"


def plan(
    request: Request,
    profile: Profile,
    *,
    work: Work,
    places: Places,
    runyard: Interpreter,
    scheduler: Scheduler,
    wrapping: Wrapping | None = None,
    snapshot: Mapping[str, Any] | None = None,
) -> Plan:
    """Plan a submission; ConfigError where the site would not take it."""
    agents = request.agents
    ruled = follow_rules(request, profile, slots=_slots(request, work), trials=work.trials)
    lanes, at_once = _how_many(request, profile, work)
    chain = plan_chain(request, lanes, can_requeue=bool(scheduler.words.requeue))
    count = lanes if chain is None else chain.agents
    if chain is not None and chain.form == "array":
        at_once = min(lanes, at_once or lanes)
    form = "jobs" if count == 1 and agents.form == "array" else agents.form
    if chain is not None and chain.form == "dependency" and lanes == 1 and form == "array":
        form = "jobs"
    wrapping = wrapping or Wrapping()
    _refuse_secrets(request)
    grace = request.checkpoints.grace
    if grace is None:
        grace = usual_grace(ruled.time)
    name = _job_name(work.kind, request.project_name, request.name)
    variables = dict(profile.script.variables)
    if agents.form == "nodes" or (request.resources.nodes or 1) > 1:
        variables |= profile.script.multi_node_variables
    job = {
        "sweep": work.sweep,
        # One is also what nobody asked for: where GPUs are shared, that says how many there are.
        "slots": None if agents.per_gpu is not None and work.slots == 1 else work.slots,
        "per_gpu": agents.per_gpu,
        "gpus": "auto" if _ties_to_gpus(request, work) else None,
        "mps": agents.mps if profile.gpus.mps else "off",
        "count": agents.trials_each,
        "folder": str(places.work),
        # Else the agent goes by the job's real length: the scheduler may have shortened it.
        "grace": request.checkpoints.grace,
        "limit": ruled.time if ruled.asks_time else None,
        "pushed_out": _may_be_pushed_out(profile, ruled) or None,
        "launcher": [*_rank_words(request, profile, runyard, wrapping), *wrapping.launcher],
        "staging": _staging(request),
        "chain": agents.chain,
        "exit": "trials",
        # A program that is submitted is a list of one line, and nobody looks for a log of it.
        "job_log": work.kind != "run" or None,
        "offline": request.tracking.mode == "offline" or None,
        # Its key is looked up on the node.
        "server": other_server(
            request.tracking.server,
            entity=request.tracking.entity,
            project=request.tracking.project,
            account=request.tracking.key,
            folder=str(places.project),
        ),
        "relay": (request.tracking.mode or profile.network.wandb) == "relay" or None,
        "snapshot": None if snapshot is None else dict(snapshot),
    }
    wanted = HeaderRequest(
        name, request, profile, ruled, form=agents.form, agents=lanes, grace=grace,
        requeue=chain is not None and chain.form == "requeue", more=wrapping.header,
    )  # fmt: skip
    return Plan(
        name=name,
        form=form,
        agents=count,
        at_once=at_once,
        header=scheduler.header(wanted),
        scheduler=scheduler,
        places=places,
        runyard=runyard,
        profile=profile,
        wrapping=wrapping,
        project_name=request.project_name,
        exp_name=request.name or "",
        grace=grace,
        modules=tuple(dict.fromkeys((*profile.script.modules, *request.environment.modules))),
        variables={**_git_variables(snapshot), **variables, **request.environment.variables},
        before=(*profile.script.before, *request.environment.before),
        job={name: value for name, value in job.items() if value not in (None, [])},
        notes=(*ruled.notes, *wrapping.notes),
        asked={
            **ruled.asked,
            **_nodes_asked(request),
            **({} if chain is None else {"chain": chain.record}),
        },
        chain=chain,
        environment=_environment(request, profile),
        is_distributed=request.distributed is not None,
    )


def _may_be_pushed_out(profile: Profile, ruled: Ruled) -> bool:
    """Whether it may have to make room for another job: then its agents look often whether it has
    to. Which partition or QOS a job gets that names none, is not known here."""
    elasticity = profile.elasticity
    partitions = set((ruled.partition or "").split(","))
    return bool(
        (elasticity.spot and (not ruled.partition or partitions & set(elasticity.spot)))
        or (elasticity.spot_qos and (not ruled.qos or ruled.qos in elasticity.spot_qos))
    )


def _nodes_asked(request: Request) -> dict[str, Any]:
    """Of a trial that is more than one process; in the form `nodes`, nodes are agents."""
    resources = request.resources
    nodes = None if request.agents.form == "nodes" else resources.nodes
    named = {"nodes": nodes, "tasks_per_node": resources.tasks_per_node}
    several = {name: number for name, number in named.items() if number and number > 1}
    return several | ({"distributed": request.distributed} if request.distributed else {})


def _environment(request: Request, profile: Profile) -> dict[str, Any]:
    environment = request.environment
    known = {
        "kind": environment.kind,
        "name": environment.name,
        "path": environment.path,
        "image": environment.image,
        "mounts": list(environment.mounts),
        "modules": list(dict.fromkeys((*profile.script.modules, *environment.modules))),
        "variables": dict(environment.variables),
        "before": [*profile.script.before, *environment.before],
        "profile": profile.name,
    }
    return {name: value for name, value in known.items() if value}


def _rank_words(
    request: Request, profile: Profile, runyard: Interpreter, wrapping: Wrapping
) -> list[str]:
    """What starts a trial's processes on all nodes of the job; nothing where it is one process."""
    if request.distributed is None:
        return []
    asked, network = request.resources, profile.network
    each = asked.tasks_per_node or 1
    settings = {
        "form": request.distributed,
        "nodes": asked.nodes or 1,
        "tasks": 1 if request.distributed in ONE_A_NODE else each,
        "processes": max(asked.gpus or 0, each),
        # A node's driver names all of its GPUs, also to a job that has none.
        "has_gpus": bool(asked.gpus or profile.gpus.implicit) or None,
        "interface": network.interface,
        "suffix": network.address_suffix,
        "ports": network.port_range,
    }
    known = {name: value for name, value in settings.items() if value is not None}
    return [
        *runyard.words("ranks.leader"), json.dumps(known), str(len(wrapping.launcher)),
    ]  # fmt: skip


def _staging(request: Request) -> dict[str, list[str]] | None:
    staging = request.staging
    content = {"data": list(staging.data), "results": list(staging.results)}
    return content if staging.data or staging.results else None


def _git_variables(snapshot: Mapping[str, Any] | None) -> dict[str, str]:
    """A snapshot is no repository: wandb is told the commit that it would have found."""
    commit = (snapshot or {}).get("commit")
    return {"WANDB_GIT_COMMIT": str(commit)} if commit else {}


def _ties_to_gpus(request: Request, work: Work) -> bool:
    """Whether each program has a GPU of the job's; one alone has all of them."""
    return bool(request.resources.gpus) and (work.slots > 1 or request.agents.per_gpu is not None)


def _slots(request: Request, work: Work) -> int:
    """Programs at a time in one agent, as far as it is known before the job."""
    per_gpu = request.agents.per_gpu
    gpus = request.resources.gpus or 0
    return max(work.slots, per_gpu * max(1, gpus) if isinstance(per_gpu, int) else 1)


def _how_many(request: Request, profile: Profile, work: Work) -> tuple[int, int | None]:
    """Agents, of each link where there is a chain, and how many of them at once."""
    agents, resources = request.agents, request.resources
    count = agents.count
    if count is None and agents.form == "nodes":
        count = resources.nodes
    if count is None and agents.chain is not None:
        # A chain is one after another; whoever wants several of them at a time says how many.
        count = 1
    if count is None:
        # One for each that can be run: late ones that find nothing to do end at once.
        each = _slots(request, work) * (agents.trials_each or 1)
        count = 1 if work.trials is None else max(1, -(-work.trials // each))
        most = profile.limit(resources.partition, resources.qos).submitted_at_once
        if most is not None and agents.trials_each is None:
            # The others would be refused. An agent takes trials until its time is up.
            count = min(count, most)
    at_once = agents.at_once
    if agents.form == "array":
        throttle = profile.limits.array_throttle
        known = [limit for limit in (at_once, throttle) if limit is not None]
        at_once = min(known, default=None)
    if at_once is not None and at_once >= count:
        at_once = None
    return count, at_once


def _job_name(kind: str, project: str, experiment: str | None) -> str:
    words = [kind, project, *([experiment] if experiment else [])]
    text = "-".join(words)
    kept = "".join(letter if letter.isalnum() or letter in "_.-" else "_" for letter in text)
    return kept[:100] or "runyard"


def _refuse_secrets(request: Request) -> None:
    for name in request.environment.variables:
        if any(word in name.upper() for word in _SECRET_NAMES):
            where = request.origin("environment.variables")
            raise ConfigError(
                f"{where}: the variable {name} looks like a secret, and what is written there "
                "stands in the job's script",
                mend="keys of tracking servers are stored by `runyard login`; for others, read "
                "a file that only you can read, in a line of `before:`",
            )
