"""`scheduler:` of a sweep file: an optimizer on somebody's machine chooses the trials.

`wandb sweep-scheduler` reads the same keys, and imports what they name; the server does neither.
"""

from __future__ import annotations

from collections.abc import Mapping

from runyard.reading.fields import Fields

ENGINES = ("wandb", "optuna", "ax")
SCHEDULER_KEYS = ("engine", "source", "optimizer", "search_space")


def read_scheduler(fields: Fields) -> str | None:
    """The engine that chooses the trials of this sweep, if it is not the server."""
    inner = fields.mapping("scheduler", "write {engine: optuna}, or remove it")
    if inner is None:
        return None
    inner.allow(SCHEDULER_KEYS)
    for key in ("optimizer", "search_space"):
        if key in inner and "source" not in inner:
            inner.error(key, f"{key} without source", "add source: file.py, in which it stands")
    _check_others(fields)
    if "engine" not in inner:
        fields.findings.error(inner.path, "scheduler has no engine", "add engine: optuna")
        return None
    engine = inner.word("engine", ENGINES)
    if engine == "wandb" and fields.data.get("method") == "custom":
        fields.error("method", "engine: wandb has no method custom", "write grid, random or bayes")
    if engine in ("optuna", "ax") and "early_terminate" in fields:
        fields.error(
            "early_terminate",
            f"the engine {engine} does not read early_terminate",
            "give the optimizer of scheduler.source a pruner, or remove it",
        )
    inner.warn(
        "engine",
        "trials of this sweep come from `wandb sweep-scheduler`, and agents wait for them",
        "start it beside the agents, or remove scheduler: then runyard searches by itself",
    )
    return engine


def names_search_space(fields: Fields) -> bool:
    """Whether a function of the scheduler's says what is searched, instead of `parameters`."""
    scheduler = fields.data.get("scheduler")
    return isinstance(scheduler, Mapping) and "search_space" in scheduler


def _check_others(fields: Fields) -> None:
    controller = fields.data.get("controller")
    if isinstance(controller, Mapping) and controller.get("type") == "local":
        fields.error(
            "controller", "a local controller and scheduler exclude each other", "keep one"
        )
    extension = fields.data.get("runyard")
    for key in ("early_terminate", "tasks", "seeds"):
        if isinstance(extension, Mapping) and key in extension:
            fields.findings.error(
                ("runyard", key), f"{key} and scheduler exclude each other", "keep one"
            )
