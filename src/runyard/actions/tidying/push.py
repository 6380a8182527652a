"""Send runs to W&B's cloud or to any other W&B server."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from runyard.actions.events import Notice, Notify
from runyard.actions.naming import find_run
from runyard.client.api import Api
from runyard.client.keys import find_key
from runyard.client.push import Report, Target, Tell, push_run
from runyard.client.wandb_server import WandbServer, target_url
from runyard.errors import RunyardError, ServerError
from runyard.shapes.runs import Run


@dataclass(frozen=True)
class PushRequest:
    """`runs`: in the user's words; none: all, or those of `from_project`.

    `entity`, `project`: where they go (the key's own, the same name). `key`: its name in keys.json.
    """

    to: str
    runs: tuple[str, ...] = ()
    from_project: str | None = None
    entity: str | None = None
    project: str | None = None
    key: str | None = None
    dry_run: bool = False


@dataclass(frozen=True)
class Failed:
    """A run that did not go over; pushed again, it goes on from there."""

    run: str
    error: RunyardError


def push(
    request: PushRequest, connect: Callable[[], Api], notify: Notify, progress: Tell
) -> Iterator[Report | Failed]:
    """One run after the other; `progress` hears how far each is."""
    url = target_url(request.to)
    key = find_key(url, os.environ, Path.cwd(), request.key)
    if key.warning:
        notify(Notice(key.warning))
    there = WandbServer(url, key.key)
    entity = request.entity or there.viewer().get("entity")
    if not entity:
        raise ServerError(f"{url} does not say whose the key is", mend="name one with --entity")
    api = connect()
    for run in _chosen(api, request):
        target = Target(there, entity, request.project or run["project"])
        try:
            yield push_run(api, run, target, progress, dry=request.dry_run)
        except RunyardError as error:
            yield Failed(run["id"], error)


def _chosen(api: Api, request: PushRequest) -> list[Run]:
    if not request.runs:
        return api.runs(project=request.from_project)
    return [find_run(api, words) for words in request.runs]
