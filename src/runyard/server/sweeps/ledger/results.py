"""What the search sees of a sweep: results in the order of ending, and what is still to end."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from sqlite3 import Connection
from typing import Any

from runyard.server.runs import runs
from runyard.server.store.sql import Row, fetch_column
from runyard.server.sweeps.ledger import sweeps
from runyard.server.sweeps.ledger.measures import last_value, measure
from runyard.server.sweeps.policy.controller_requests import plain_value
from runyard.server.sweeps.policy.rules import Aim, Rules
from runyard.vocabulary import ENDED_STATES

IsEnough = Callable[[int, int], bool]
Place = Callable[[Mapping[str, Any]], Sequence[float] | None]


@dataclass(frozen=True)
class View:
    """A sweep at one moment, from `since` on."""

    # As the search's process wants them: number, point, values (to be made small), constraints.
    results: list[dict[str, Any]] = field(default_factory=list)
    # The rank of the newest end that is in the results.
    upto: int = 0
    # Points that are handed out, or were, and have no result yet, each as JSON: they are passed on
    # as they are, and there may be hundreds. None: nobody wanted them.
    pending: list[str] | None = None
    at_work: int = 0
    # The number of the next setting.
    setting: int = 0
    # How many ends there are up to that rank.
    ends: int = 0
    # Something that was told before is no result any more: these are all there are.
    is_anew: bool = False


def view(
    db: Connection,
    sweep: int,
    since: int,
    is_enough: IsEnough = lambda *_: False,
    *,
    ends: int | None = None,
) -> View | None:
    """What has ended since that rank, and what has not ended; None where the sweep is gone.

    `is_enough` says, of how many are at work and how many results are new, whether there is enough
    without knowing what has not ended. `ends` is how many ends there were up to that rank when they
    were told. Where one is gone (a paused trial goes on, a failed one is tried again, a run is
    deleted), all is told anew: what a trial reached before it went on must not count beside what it
    reaches in the end.
    """
    row = sweeps.by_key(db, sweep)
    if row is None:
        return None
    rules = sweeps.rules_of(row)
    standing = db.execute(
        "SELECT count(*) FROM trials WHERE sweep = ? AND ended <= ?", (sweep, since)
    ).fetchone()[0]
    is_anew = ends is not None and ends != standing
    if is_anew:
        since = standing = 0
    ended = db.execute(
        "SELECT * FROM trials WHERE sweep = ? AND ended > ? ORDER BY ended", (sweep, since)
    ).fetchall()
    at_work = db.execute(
        "SELECT count(*) FROM trials WHERE sweep = ? AND state = 'running'", (sweep,)
    ).fetchone()[0]
    is_left_out = is_enough(at_work, len(ended))
    # A setting of several seeds has ended with the last of them.
    are_needed = not is_left_out or (ended and rules.seeds > 1)
    open_settings = _open(db, sweep, rules) if are_needed else {}
    results = []
    for trial in ended:
        result = _result(db, trial, rules, open_settings)
        if result is not None:
            results.append(result)
    return View(
        results,
        ended[-1]["ended"] if ended else since,
        None if is_left_out else list(open_settings.values()),
        at_work,
        row["drawn"] // rules.seeds,
        standing + len(ended),
        is_anew,
    )


def handed_out(db: Connection, sweep: int) -> list[str]:
    """The points of every setting that was ever handed out, as JSON."""
    return fetch_column(
        db,
        "SELECT point FROM trials WHERE sweep = ? AND point IS NOT NULL GROUP BY setting",
        (sweep,),
    )


def demand(db: Connection, sweep: int) -> tuple[Row, int, int, int] | None:
    """A sweep, and how many of its trials wait, are at work, and have ended."""
    row = sweeps.by_key(db, sweep)
    if row is None:
        return None
    counts = sweeps.open_counts(db, sweep)
    waiting, running = counts.get("waiting", 0), counts.get("running", 0)
    return row, waiting, running, row["trials"] - waiting - running


def prior_results(db: Connection, sweep: int, place: Place) -> list[dict[str, Any]]:
    """What the runs reached that a sweep was told of when it was made."""
    row = sweeps.by_key(db, sweep)
    if row is None:
        return []
    rules = sweeps.rules_of(row)
    results = []
    for number, key in enumerate(json.loads(row["prior"])):
        run = runs.by_key(db, key)
        if run is None:
            continue
        point = place(settings_of(run))
        if point is not None:
            measured = measure(db, run, rules)
            results.append(_as_result(-1 - number, list(point), [measured], rules))
    return results


def settings_of(run: Row) -> dict[str, Any]:
    """What a run's config says, without what the client says of itself."""
    config = json.loads(run["config"])
    return {name: plain_value(item) for name, item in config.items() if name != "_wandb"}


def _open(db: Connection, sweep: int, rules: Rules) -> dict[int, str]:
    """The points of settings of which a trial has not ended.

    One that is paused counts with what it has reached; of several seeds, the setting waits for it.
    """
    rows = db.execute(
        "SELECT setting, point FROM trials WHERE sweep = ? AND point IS NOT NULL "
        "AND state IN ('waiting', 'running', CASE WHEN ? > 1 THEN 'paused' END)",
        (sweep, rules.seeds),
    )
    return {row["setting"]: row["point"] for row in rows}


def _result(
    db: Connection, trial: Row, rules: Rules, open_settings: Mapping[int, str]
) -> dict[str, Any] | None:
    """A setting's result, at the end of the last of its seeds: the mean of those that have one."""
    if trial["point"] is None or trial["setting"] in open_settings:
        return None
    if rules.seeds == 1:
        twins = [trial]
    else:
        twins = db.execute(
            "SELECT * FROM trials WHERE sweep = ? AND setting = ?",
            (trial["sweep"], trial["setting"]),
        ).fetchall()
        is_last = all(
            twin["state"] in ENDED_STATES and (twin["ended"] or 0) <= trial["ended"]
            for twin in twins
        )
        if not is_last or len(twins) < rules.seeds:
            return None
    counted = [_measured(db, twin, rules) for twin in twins]
    values = [reached for reached in counted if reached is not None]
    return _as_result(trial["setting"], json.loads(trial["point"]), values, rules)


def _measured(db: Connection, trial: Row, rules: Rules) -> dict[str, float] | None:
    """The values with which a trial enters the model; None: it has none.

    One that was stopped early enters with what it reached, unless the file says otherwise.
    """
    measured: dict[str, float] = json.loads(trial["measured"] or "{}")
    aims = {aim.name for aim in rules.aims}
    if trial["state"] == "finished" and aims <= measured.keys():
        return measured
    imputed = dict(measured) if trial["state"] in ("stopped", "paused") else {}
    for aim in rules.aims:
        value = _imputed(db, trial, aim, measured)
        if value is not None:
            imputed[aim.name] = value
    return imputed if imputed and aims <= imputed.keys() else None


def _imputed(db: Connection, trial: Row, aim: Aim, measured: Mapping[str, float]) -> float | None:
    if aim.impute == "best":
        return measured.get(aim.name)
    if aim.impute == "worst":
        return _worst(db, trial, aim)
    run = None if trial["run"] is None else runs.by_key(db, trial["run"])
    if aim.impute == "latest" and run is not None:
        return last_value(db, run["key"], json.loads(run["summary"]), aim.name)
    return None


def _worst(db: Connection, trial: Row, aim: Aim) -> float | None:
    """The worst that any trial had reached by then."""
    rows = db.execute(
        "SELECT measured FROM trials WHERE sweep = ? AND ended <= ? AND measured IS NOT NULL",
        (trial["sweep"], trial["ended"]),
    )
    values = [json.loads(row["measured"]).get(aim.name) for row in rows]
    return max((value for value in values if value is not None), key=aim.lowered, default=None)


def _as_result(
    number: int, point: list[float], measured: Sequence[Mapping[str, float]], rules: Rules
) -> dict[str, Any]:
    aims = {aim.name for aim in rules.aims}
    whole = [reached for reached in measured if aims <= reached.keys()]
    values = [
        sum(aim.lowered(reached[aim.name]) for reached in whole) / len(whole)
        for aim in (rules.aims if whole else ())
    ]
    limits = [
        max(
            (limit.excess(reached[limit.name]) for reached in whole if limit.name in reached),
            default=1.0,
        )
        for limit in (rules.limits if whole else ())
    ]
    return {"number": number, "point": point, "values": values, "constraints": limits}
