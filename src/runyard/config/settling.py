"""From what was said to what is meant: defaults filled in, one form for what has several."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from runyard.clusters.environment_kinds import CONTAINER_KINDS
from runyard.clusters.profile import Profile
from runyard.config.project_shape import ClusterFile
from runyard.config.request import Environment, Resources
from runyard.errors import ConfigError
from runyard.rank_forms import RANK_FORMS
from runyard.reading.kinds import Unfit
from runyard.reading.records import kind_of_setting, settings_of


def with_defaults(resources: Resources, profile: Profile) -> Resources:
    """What nobody said is as the profile has it. Who names a type of GPU wants one."""
    if resources.gpu_type is not None and resources.gpus is None:
        resources = replace(resources, gpus=1)
    for name, text in profile.submission.defaults.items():
        known = settings_of(Resources)
        if name not in known or getattr(resources, name) not in (None, ()):
            continue
        if name == "memory" and resources.memory_per_gpu is not None:
            continue
        if name == "memory_per_gpu" and resources.memory is not None:
            continue
        try:
            value = kind_of_setting(known[name]).parse(text)
        except Unfit as error:
            raise ConfigError(
                f"the profile {profile.name} has {text!r} as the default of {name}; {error.wanted}",
                mend=error.mend,
            ) from None
        resources = replace(resources, **{name: value})
    if resources.gpu_type is None and resources.gpus and profile.gpus.default_type:
        resources = replace(resources, gpu_type=profile.gpus.default_type)
    return resources


def settle_resources(
    resources: Resources, distributed: str | None, origins: Mapping[str, str]
) -> Resources:
    """Memory as one number a node, and the tasks that a way of distributing asks for."""
    if resources.memory_per_gpu is not None:
        if "resources.memory" in origins and "resources.memory_per_gpu" in origins:
            raise ConfigError(
                f"{origins['resources.memory']} and {origins['resources.memory_per_gpu']} both say "
                "how much memory",
                mend="remove one of the two",
            )
        memory = resources.memory_per_gpu * max(1, resources.gpus or 0)
        resources = replace(resources, memory=memory)
    if resources.tasks_per_node is None and distributed is not None:
        # Most count on a task a GPU; torchrun and accelerate start a node's processes themselves.
        gpus = max(1, resources.gpus or 0)
        if distributed not in ("torchrun", "accelerate"):
            return replace(resources, tasks_per_node=gpus)
        return replace(resources, tasks_per_node=1, cpus=(resources.cpus or 1) * gpus)
    return resources


def settle_job_type(read: ClusterFile, origins: Mapping[str, str]) -> str:
    """What kind of job it is. Who says a kind has to say what it needs."""
    sweeps = read.sweep_id or read.sweep
    if read.job_type == "distributed" and read.distributed is None:
        raise ConfigError(
            f"{origins['job_type']}: a distributed job says how its processes find each other",
            mend=f"add distributed: {' or '.join(RANK_FORMS)}, or -W",
        )
    if read.job_type == "sweep" and not sweeps:
        raise ConfigError(
            f"{origins['job_type']}: a sweep job says which sweep",
            mend="add sweep: FILE or sweep_id: ID, or -w",
        )
    if read.job_type is not None:
        return read.job_type
    return "distributed" if read.distributed else "sweep" if sweeps else "standard"


def settle_environment(environment: Environment, origins: Mapping[str, str]) -> Environment:
    """The kind that an image or a name means, and no two kinds at once."""
    is_container = environment.kind in CONTAINER_KINDS
    for name, kind in (("name", "conda"), ("path", "venv")):
        if environment.kind == "none" and getattr(environment, name) is not None:
            raise ConfigError(
                f"{origins.get(f'environment.{name}')}: the environment has a {name} and no kind",
                mend=f"add kind: {kind}, or the kind that it is",
            )
    if environment.image is None:
        if is_container:
            raise ConfigError(
                f"{origins.get('environment.kind', 'environment')}: {environment.kind} runs an "
                "image, and none is named",
                mend="add image: FILE under environment",
            )
    elif not is_container:
        if environment.kind != "none":
            raise ConfigError(
                f"{origins.get('environment.image')}: there is an image, and the environment's "
                f"kind is {environment.kind}",
                mend=f"write kind: {CONTAINER_KINDS[0]}, or remove the image",
            )
        environment = replace(environment, kind="apptainer")
    if environment.kind == "apptainer":
        _check_image(str(environment.image), origins)
    return environment


def _check_image(image: str, origins: Mapping[str, str]) -> None:
    if not image.endswith(".sif") and "://" not in image:
        raise ConfigError(
            f"{origins.get('environment.image')}: {image!r} is no image file: its name does not "
            "end in .sif",
            mend="name the .sif file; `apptainer build NAME.sif docker://...` makes one",
        )
