"""A command that is a worker of a sweep: `wandb agent ENTITY/PROJECT/SWEEP`.

Older projects keep it in the file of their command. It says which sweep is meant, and how many
trials each worker takes; the work itself is done by runyard's own agents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runyard.reading.units import read_whole

_OPTIONS = {"-p": "project", "--project": "project", "-e": "entity", "--entity": "entity",
            "--count": "count", "--forward-signals": None, "-f": None}  # fmt: skip


@dataclass(frozen=True)
class Worker:
    """Where the sweep is, its id, and how many trials a worker takes."""

    place: tuple[str, ...]
    sweep: str
    count: int | None = None

    def path(self, sweep_id: str | None = None) -> str:
        """The sweep; or another one beside it, where only its id is given."""
        if sweep_id is not None and "/" in sweep_id:
            return sweep_id
        return "/".join((*self.place, sweep_id or self.sweep))


def read_worker(command: Sequence[str]) -> Worker | None:
    """The worker that a command is; None where it is a program like any other."""
    words = list(command)
    if words[:2] == ["python", "-m"]:
        words = words[2:]
    if words[:2] != ["wandb", "agent"]:
        return None
    options: dict[str, str] = {}
    paths: list[str] = []
    rest = iter(words[2:])
    for word in rest:
        option, equals, value = word.partition("=")
        if option not in _OPTIONS:
            paths.append(word)
        elif (name := _OPTIONS[option]) is not None:
            options[name] = value if equals else next(rest, "")
    if len(paths) != 1 or paths[0].startswith("-"):
        return None
    *place, sweep = paths[0].split("/")
    if not place:
        place = [options[name] for name in ("entity", "project") if options.get(name)]
    count = options.get("count", "")
    return Worker(tuple(place), sweep, read_whole(count) or None)
