"""Delete runs: to the trash, back from it, or for good."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from runyard.actions.naming import find_run
from runyard.client.api import Api
from runyard.errors import NotFoundError
from runyard.shapes.runs import RunDetail, TrashedRun


def delete_runs(
    api: Api,
    words: Sequence[str],
    confirm: Callable[[list[RunDetail]], bool],
    *,
    with_artifacts: bool = False,
    now: bool = False,
) -> Iterator[RunDetail]:
    """One after the other, once `confirm` has agreed; nothing where it does not.

    All are found before any is deleted: a word that means no run changes nothing. They go to the
    trash for 30 days, or, with `now`, for good.
    """
    runs = {run["key"]: run for run in (find_run(api, word) for word in words)}
    if not confirm(list(runs.values())):
        return
    for run in runs.values():
        api.delete_run(run, with_artifacts=with_artifacts, now=now)
        yield run


def restore_runs(api: Api, words: Sequence[str]) -> list[TrashedRun]:
    """Put runs of the trash back where they were. A word is an id, a name or PROJECT/ID."""
    trash = api.trash.runs()
    runs = {run["key"]: run for run in (_trashed(trash, word) for word in words)}
    api.trash.restore(list(runs))
    return list(runs.values())


def empty_trash(api: Api, confirm: Callable[[list[TrashedRun]], bool]) -> list[TrashedRun]:
    """Delete all that is in the trash for good, once `confirm` has agreed."""
    trash = api.trash.runs()
    if not trash or not confirm(trash):
        return []
    api.trash.delete([run["key"] for run in trash])
    return trash


def _trashed(trash: Sequence[TrashedRun], word: str) -> TrashedRun:
    """The one that was deleted last, where several match."""
    for run in trash:
        if word in (run["id"], run["name"], f"{run['project']}/{run['id']}"):
            return run
    raise NotFoundError(
        f"there is no run {word!r} in the trash", mend="`runyard delete --trash` lists what is"
    )
