"""A sweep whose trials are calls of a function in this process."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from runyard.client.discover import ensure_server
from runyard.client.roots import trust_of
from runyard.client.wandb_variables import wandb_variables
from runyard.errors import RunyardError, UsageError
from runyard.home import Home, read_discovery
from runyard.shapes.sweeps import Sweep


def call_function(
    home: Home,
    config: Mapping[str, Any] | str | os.PathLike[str],
    function: Callable[[], object],
    count: int | None,
    project: str | None,
    entity: str | None,
    budget: str | None = None,
) -> Sweep:
    """One call a trial, one at a time, which finds its values by `wandb.init()`."""
    try:
        import wandb
    except ImportError:
        raise RunyardError(
            "a function finds its values through wandb, which is not installed here",
            mend="pip install wandb",
        ) from None
    server = ensure_server(home)
    content = dict(config) if isinstance(config, Mapping) else Path(config).read_text("utf-8")
    sweep: Sweep = server.api.sweeps.create(
        content,
        project=project or os.environ.get("WANDB_PROJECT"),
        entity=entity or os.environ.get("WANDB_ENTITY"),
        folder=str(Path.cwd()),
    )
    if budget is not None:
        sweep = server.api.sweeps.set_budget(sweep["key"], budget)
    if sweep["expected"] is None and count is None and sweep["budget"] is None:
        server.api.sweeps.set_state(sweep["key"], "canceled")
        raise UsageError(
            "this sweep has no end of its own", mend="give a count, a run_cap or a budget"
        )
    discovery = read_discovery(home)
    assert discovery is not None
    before = dict(os.environ)
    key = server.api.people.add_key(f"sweep {sweep['name'] or sweep['id']}", kind="run")
    os.environ.update(wandb_variables(discovery.url, key["key"], os.environ))
    os.environ.update(trust_of(home, discovery, os.environ))
    try:
        wandb.agent(
            sweep["id"], function, entity=sweep["entity"], project=sweep["project"], count=count
        )
    finally:
        os.environ.clear()
        os.environ.update(before)
        server.api.people.revoke_key(key)
    return server.api.sweeps.sweep(sweep["key"])
