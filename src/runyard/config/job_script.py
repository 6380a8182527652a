"""A job script that a project has: the shape of what is read from it, and the reading of its body.

Its header is in a scheduler's own words, and is read in that scheduler's room (`ScriptReader`). The
body is read here, without a shell: what is not certain is left out and named, for a person to see.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runyard.config.worker_command import read_worker

_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_POSITIONAL = re.compile(r"\$(\{?[1-9@*#]\}?)")
_LAUNCHERS = ("torchrun", "accelerate", "deepspeed", "wandb")
# Words that run what follows them as it is.
_PREFIXES = ("time", "nohup", "exec", "env")
# Python that prepares, and is not what the job is for.
_PREPARES = re.compile(r"python[\d.]* (-c |-V|--version|-m (pip|venv|ensurepip)|setup\.py )")
_CONTAINERS = ("apptainer", "singularity")
# Options of containers that take the next word as their value.
_CONTAINER_VALUES = frozenset(("-B", "--bind", "--env", "-H", "--home", "--pwd", "--env-file"))

Settings = dict[str, Any]


@dataclass
class Translated:
    """What a script says, by the paths of runyard.yaml, and what it is worth to know about it."""

    settings: Settings = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class ScriptReader:
    """How a scheduler's job scripts are found and read."""

    endings: tuple[str, ...]
    """Of their file names, besides those of shell scripts."""
    header: re.Pattern[str]
    """A line that only this scheduler's scripts have."""
    read: Callable[[str], Translated]


@dataclass(frozen=True)
class ScriptWords:
    """What a scheduler adds to the language of scripts."""

    starters: Mapping[str, frozenset[str]]
    """Programs that run what follows them, and their options that take the next word."""
    job_variables: str
    """How the variables begin that are set in jobs only: `${NAME_`."""


class Body:
    """What the lines of a script say, in the order in which they stand."""

    def __init__(self, translated: Translated, words: ScriptWords) -> None:
        self._settings = translated.settings
        self._notes = translated.notes
        self._scheduler = words
        self._variables: dict[str, str] = {}
        # Those whose values are known when the script runs, NAME=$(hostname), and lists.
        self._computed: set[str] = set()

    def read(self, lines: Sequence[str]) -> None:
        for line in lines:
            for part in re.split(r"\s(?:&&|;)\s", line):
                self._read_line(part)

    def _read_line(self, line: str) -> None:
        try:
            words = _words(line)
        except ValueError:
            return
        computed = re.match(r"([A-Za-z_]\w*)=(\(|.*\$\(|.*`)", line)
        if computed is not None:
            self._computed.add(computed[1])
            return
        assigned = _ASSIGNED.fullmatch(words[0]) if len(words) == 1 else None
        if assigned is not None:
            self._variables[assigned[1]] = assigned[2]
        if not words or assigned is not None:
            return
        filled = [self._filled(word) for word in words]
        if filled[0] == "export":
            self._read_export(filled[1:])
        elif not self._read_environment(filled):
            self._read_command(filled, line)

    def _filled(self, word: str) -> str:
        """With the script's own variables in it, and those of the node as `${NAME}`."""
        word = _braced(word)
        for _ in range(5):  # One variable may name another.
            before = word
            for name, value in self._variables.items():
                word = word.replace(f"${{{name}}}", _braced(value))
            if word == before:
                break
        return word

    def _read_environment(self, words: list[str]) -> bool:
        if words[:2] == ["module", "load"]:
            self._settings.setdefault("environment.modules", []).extend(words[2:])
        elif words[:2] in (["conda", "activate"], ["mamba", "activate"], ["source", "activate"],
                           ["micromamba", "activate"]):  # fmt: skip
            if len(words) > 2:
                self._use_conda(words[2])
        elif words[0] in ("source", ".") and len(words) == 2 and words[1].endswith("/bin/activate"):
            folder = words[1].removesuffix("/bin/activate")
            self._settings["environment.kind"] = "venv"
            if self._scheduler.job_variables in folder:
                # Made anew in each job, of the project's requirements.
                self._settings["environment.build"] = True
            else:
                self._settings["environment.path"] = folder
        else:
            return False
        return True

    def _use_conda(self, name: str) -> None:
        self._settings.pop("environment.path", None)  # That of conda itself.
        where = "environment.path" if "/" in name else "environment.name"
        self._settings |= {"environment.kind": "conda", where: name}

    def _read_export(self, words: list[str]) -> None:
        for word in words:
            name, equals, value = word.partition("=")
            if not equals:
                continue
            if _SECRET.search(name):
                self._notes.append(
                    f"{name} is left out: `runyard login` keeps keys where jobs find them"
                )
            elif "$(" not in value and "`" not in value and not _POSITIONAL.search(value):
                self._variables[name] = value
                self._settings.setdefault("environment.variables", {})[name] = value

    def _read_command(self, words: list[str], line: str) -> None:
        words = self._unwrapped(words)
        if not words or not _is_command(words) or _PREPARES.match(f"{' '.join(words)} "):
            return
        if words[:2] == ["wandb", "agent"]:
            self._read_worker(words)
            return
        words = [word for word in words if word not in ("${@}", "$@", "${*}", "$*")]
        words = self._without_torchrun(words)
        text = " ".join(words)
        missing = {f"${name.strip('{}')}" for name in _POSITIONAL.findall(text)}
        missing |= {f"${name}" for name in self._computed if f"${{{name}}}" in text}
        if missing:
            self._notes.append(
                f"`{line.strip()}` is left out: it needs what the script is given "
                f"({', '.join(sorted(missing))}); write command:"
            )
            return
        self._settings["command"] = shlex.join(words)

    def _without_torchrun(self, words: list[str]) -> list[str]:
        """Over several nodes runyard starts torchrun itself, and tells its ranks where to meet."""
        place = next((n for n, word in enumerate(words) if word.endswith(".py")), None)
        if words[0].rsplit("/", 1)[-1] != "torchrun" or place is None:
            return words
        if self._settings.get("resources.nodes", 1) == 1:
            return words
        self._settings["distributed"] = "torchrun"
        return ["python", *words[place:]]

    def _unwrapped(self, words: list[str]) -> list[str]:
        """The program behind what starts it: the scheduler, a container, `uv run`."""
        while words:
            first = words[0].rsplit("/", 1)[-1]
            variable = _ASSIGNED.fullmatch(words[0])
            if variable is not None and len(words) > 1:
                self._settings.setdefault("environment.variables", {})[variable[1]] = variable[2]
                words = words[1:]
            elif first in _PREFIXES:
                words = words[1:]
            elif first in self._scheduler.starters:
                words = _behind_options(words[1:], self._scheduler.starters[first])
            elif words[:2] in (["uv", "run"], ["poetry", "run"], ["pipenv", "run"]):
                words = _behind_options(words[2:], frozenset())
                words = ["python", *words] if words and words[0].endswith(".py") else words
            elif words[:2] in (["conda", "run"], ["mamba", "run"]):
                if "-n" in words[:-1]:
                    self._use_conda(words[words.index("-n") + 1])
                words = _behind_options(words[2:], frozenset(("-n", "-p")))
            elif first in _CONTAINERS and words[1:2] in (["exec"], ["run"]):
                words = _behind_options(words[2:], _CONTAINER_VALUES)
                if words:
                    self._settings |= {
                        "environment.kind": "apptainer", "environment.image": words[0],
                    }  # fmt: skip
                words = words[1:]
            else:
                return words
        return words

    def _read_worker(self, words: list[str]) -> None:
        worker = read_worker(words)
        if worker is None or "$" in worker.path() or re.search(r"[<>\[\]]", worker.path()):
            return
        self._settings["sweep_id"] = worker.path()
        if worker.count is not None:
            self._settings["agents.trials_each"] = worker.count


def take_agents_from_nodes(settings: Settings, *, in_each_task: bool) -> None:
    """The tasks of a script that starts agents are agents: a trial is not spread over them.

    Where none is started in each task there is one on the first node, and more tasks are more CPUs
    for it.
    """
    nodes = settings.pop("resources.nodes", 1)
    tasks = settings.pop("resources.tasks_per_node", 1)
    if not in_each_task:
        if tasks > 1:
            settings["resources.cpus"] = settings.get("resources.cpus", 1) * tasks
        return
    if nodes * tasks > 1:
        settings["agents.count"] = settings.get("agents.count", 1) * nodes * tasks
    if nodes > 1:
        settings["agents.form"] = "nodes"


def _words(line: str) -> list[str]:
    """Of one command: without comments, redirections, pipes and `&`."""
    line = re.sub(r"(?<=\s)[12&]>", ">", line)
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&><;")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    words: list[str] = []
    for word in lexer:
        if word and set(word) <= set("|&><;"):
            break
        words.append(word)
    return words


def _behind_options(words: list[str], with_values: frozenset[str]) -> list[str]:
    while words and words[0].startswith("-"):
        words = words[2:] if words[0] in with_values else words[1:]
    return words


def _is_command(words: list[str]) -> bool:
    first = words[0].rsplit("/", 1)[-1]
    if first in ("bash", "sh", "zsh"):
        return len(words) > 1 and words[1].endswith(".sh")
    is_script = words[0].startswith("./") and words[0].endswith((".sh", ".py"))
    return first in _LAUNCHERS or first.startswith("python") or is_script


def _braced(text: str) -> str:
    """`$NAME` as `${NAME}`, the form that runyard.yaml has."""
    return re.sub(r"\$([A-Za-z_]\w*)", r"${\1}", text)
