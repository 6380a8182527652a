"""A sweep inside a Python program: `runyard.sweep(config, function=train, count=20)`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from runyard.client.discover import ensure_server
from runyard.client.environment import wandb_environment
from runyard.client.roots import trust_of
from runyard.client.sweeps import Sweep
from runyard.errors import RunyardError, UsageError
from runyard.home import locate, read_discovery


def sweep(
    config: Mapping[str, Any] | str | os.PathLike[str],
    function: Callable[[], object] | None = None,
    *,
    count: int | None = None,
    slots: int | None = None,
    per_gpu: int | str | None = None,
    gpus: str | None = None,
    mps: str | None = None,
    project: str | None = None,
    entity: str | None = None,
) -> Sweep:
    """Make a sweep of a file, or of what would stand in one, and work it off; the sweep as it ends.

    With a function, each trial is a call of it in this process, which finds its values by
    `wandb.init()` in `wandb.config`: one at a time, at most `count`. Without, the sweep's own
    program or command is run, `slots` at a time, or `per_gpu` on each GPU (a number, or "auto").
    `gpus` and `mps` are those of `runyard sweep`.
    """
    if function is None:
        asked = {"slots": slots, "per-gpu": per_gpu, "gpus": gpus, "mps": mps}
        options = {"count": count, "project": project, "entity": entity, **asked}
        return _run_command(config, options)
    if slots not in (None, 1) or per_gpu is not None or gpus is not None:
        raise UsageError(
            "a function's trials run one at a time, in this process",
            mend="leave slots out; or name a program in the sweep, and leave the function out",
        )
    return _call_function(config, function, count, project, entity)


def _call_function(
    config: Mapping[str, Any] | str | os.PathLike[str],
    function: Callable[[], object],
    count: int | None,
    project: str | None,
    entity: str | None,
) -> Sweep:
    try:
        import wandb
    except ImportError:
        raise RunyardError(
            "a function finds its values through wandb, which is not installed here",
            mend="pip install wandb",
        ) from None
    home = locate()
    found = ensure_server(home)
    given = dict(config) if isinstance(config, Mapping) else Path(config).read_text("utf-8")
    made = found.api.sweeps.create(
        given,
        project=project or os.environ.get("WANDB_PROJECT"),
        entity=entity or os.environ.get("WANDB_ENTITY"),
        folder=str(Path.cwd()),
    )
    if made["expected"] is None and count is None:
        found.api.sweeps.set_state(made["key"], "canceled")
        raise UsageError("this sweep has no end of its own", mend="give a count, or a run_cap")
    discovery = read_discovery(home)
    assert discovery is not None
    before = dict(os.environ)
    key = found.api.people.add_key(f"sweep {made['name'] or made['id']}", kind="run")
    os.environ.update(wandb_environment(discovery.url, key["key"], os.environ))
    os.environ.update(trust_of(home, discovery, os.environ))
    try:
        wandb.agent(
            made["id"], function, entity=made["entity"], project=made["project"], count=count
        )
    finally:
        os.environ.clear()
        os.environ.update(before)
        found.api.people.revoke_key(key)
    return found.api.sweeps.sweep(made["key"])


def _run_command(
    config: Mapping[str, Any] | str | os.PathLike[str], options: Mapping[str, int | str | None]
) -> Sweep:
    words = [sys.executable, "-m", "runyard", "sweep", "--json"]
    for name, value in options.items():
        words += [f"--{name}", str(value)] if value is not None else []
    text = json.dumps(dict(config)) if isinstance(config, Mapping) else None
    done = subprocess.run(
        [*words, "-" if text is not None else os.fspath(config)],  # type: ignore[arg-type]
        input=text,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if not done.stdout.strip():
        raise RunyardError(f"the sweep did not run (exit code {done.returncode}): see above")
    ended: Sweep = json.loads(done.stdout)
    return ended
