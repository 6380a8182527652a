"""The keys of `hydra.launcher`: the options of runyard's Python API. None leaves it to runyard."""

from dataclasses import dataclass, field
from typing import Any

from hydra.core.config_store import ConfigStore


@dataclass
class RunyardLauncherConf:
    _target_: str = "hydra_plugins.runyard_launcher.launcher.RunyardLauncher"

    # Where: "slurm" or "here". None: on the cluster if there is one, otherwise on this machine.
    on: str | None = None
    # How many jobs run at a time. None: all of them; on this machine as many as there are CPUs.
    at_once: int | None = None
    # How often a job that fails is run again.
    retries: int | None = None
    # How many Slurm jobs may follow each other when the time limit is shorter than the work.
    chain: int | None = None
    # Modules that are imported once for all jobs: [torch].
    warm: list[str] | None = None

    # Names: of the sweep, and where its runs are listed.
    name: str | None = "${hydra.job.name}"
    project: str | None = None
    entity: str | None = None
    # The folder whose code runs. None: the current one.
    folder: str | None = None

    # What each job asks for; these replace `resources:` of runyard.yaml.
    time: str | None = None
    gpus: int | None = None
    gpu_type: str | None = None
    cpus: int | None = None
    memory: str | None = None
    memory_per_gpu: str | None = None
    nodes: int | None = None
    tasks_per_node: int | None = None
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None
    reservation: str | None = None
    exclude: list[str] | None = None
    mail: list[str] | None = None
    mail_to: str | None = None
    # More options of sbatch, such as ["--hold"].
    extra: list[str] | None = None

    # Any other setting of runyard.yaml, as it stands there: {environment: {modules: [cuda]}}.
    settings: dict[str, Any] = field(default_factory=dict)


ConfigStore.instance().store(
    group="hydra/launcher", name="runyard", node=RunyardLauncherConf, provider="runyard_launcher"
)
