"""Why trials failed: the cause, and the last line that their program printed."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from runyard.client.api import Api
from runyard.errors import RunyardError
from runyard.shapes.sweeps import Sweep, Trial

_LAST_CHARACTERS = 2000
_EXPLAINED = 20


def failures(
    api: Api,
    sweep: Sweep,
    known: Mapping[str, tuple[Trial, str]] = MappingProxyType({}),
    *,
    last: int | None = None,
) -> list[tuple[Trial, str]]:
    """The trials that failed, or the last so many, each with the reason; the newest is the last."""
    if not sweep["counts"]["failed"]:
        return []
    failed = api.sweeps.trials(sweep["key"], state="failed", last=last)
    failed.sort(key=lambda trial: trial["ended_at"] or 0.0)
    # A reason is a question to the server: of many failures, only for those that are shown.
    explained = {trial["id"] for trial in failed[-_EXPLAINED:]}
    return [
        known.get(trial["id"])
        or (trial, why_failed(api, trial) if trial["id"] in explained else _cause(trial))
        for trial in failed
    ]


_NAN = (" is NaN", " is Infinity", " is -Infinity")


def why_failed(api: Api, trial: Trial) -> str:
    """The cause, and the last line that its program printed."""
    code = trial["exit_code"]
    cause = _cause(trial)
    how = f"exit code {code}" if cause == "program" and code is not None else cause
    if cause == "killed":
        how = f"killed {trial['attempts']} times by signal 9, for memory or by somebody"
    try:
        detail = api.run(trial["id"])
        size = sum(attempt["console_bytes"] for attempt in detail["attempts"])
        text = api.console(detail, max(0, size - _LAST_CHARACTERS))["text"]
    except RunyardError:
        return how
    if cause == "nan":
        # The server's own words, where it was the one that noticed: "loss is NaN".
        noticed = [alert["title"] for alert in detail["alerts"] if alert["title"].endswith(_NAN)]
        how = noticed[-1] if noticed else "a value became NaN or infinite"
    last = next((line.strip() for line in reversed(text.splitlines()) if _is_of_program(line)), "")
    return f"{how}: {last}" if last else how


def _cause(trial: Trial) -> str:
    return trial["cause"] or "failed"


def _is_of_program(line: str) -> bool:
    # The wandb client's closing words come after the program's own.
    return bool(line.strip()) and not line.lstrip().startswith("wandb:")


def is_list(sweep: Sweep) -> bool:
    """Whether it is a list of command lines."""
    return bool((sweep["config"].get("runyard") or {}).get("tasks"))
