"""Delete runs for good: config, summary, history, console and files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from runyard.actions.naming import find_run
from runyard.client.api import Api, RunDetail


def delete_runs(
    api: Api,
    words: Sequence[str],
    confirm: Callable[[list[RunDetail]], bool],
    *,
    with_artifacts: bool = False,
) -> Iterator[RunDetail]:
    """One after the other, once `confirm` has agreed; nothing where it does not.

    All are found before any is deleted: a word that means no run changes nothing.
    """
    runs = {run["key"]: run for run in (find_run(api, word) for word in words)}
    if not confirm(list(runs.values())):
        return
    for run in runs.values():
        api.delete_run(run, with_artifacts=with_artifacts)
        yield run
