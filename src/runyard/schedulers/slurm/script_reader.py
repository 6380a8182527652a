"""Job scripts that people have for Slurm, read: `#SBATCH` lines here, the body by `job_script`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from runyard.config.command_file import LONGEST_LINE
from runyard.config.job_script import (
    Body,
    ScriptReader,
    ScriptWords,
    Translated,
    take_agents_from_nodes,
)
from runyard.reading.units import read_seconds, read_whole, short_memory, short_time

_SHORT = {
    "J": "job-name", "t": "time", "p": "partition", "A": "account", "q": "qos", "C": "constraint",
    "N": "nodes", "n": "ntasks", "c": "cpus-per-task", "G": "gpus", "x": "exclude", "a": "array",
    "o": "output", "e": "error", "D": "chdir", "w": "nodelist", "L": "licenses",
}  # fmt: skip
# runyard makes these itself.
_OURS = {
    "output": "runyard keeps the logs", "error": "runyard keeps the logs",
    "export": "the environment comes from runyard.yaml",
    "chdir": "jobs run in the project's folder",
    "open-mode": "runyard keeps the logs", "signal": "runyard tells programs before the end",
    "requeue": "runyard lets trials go on", "no-requeue": "runyard lets trials go on",
}  # fmt: skip
# What examples of scripts say in the place of a name: def-someuser, <account>, YOUR_ACCOUNT, $NAME.
_PLACEHOLDER = re.compile(
    r".*[<>\[\]$].*|x{2,}|.*\byour[-_.]?(\w*)\b.*|(def-|rrg-)?(some|your)[-_]?"
    r"(user|one|name|pi|prof|group|account)\w*|change[-_]?me|todo|\.{2,}|"
    r"(account|partition|project|user|qos)[-_]?(name|id|here)",
    re.IGNORECASE,
)
_NAMES = ("account", "partition", "qos", "reservation", "mail-user", "constraint")
# Options of srun that take the next word as their value.
_SRUN_VALUES = frozenset(
    ("-n", "-N", "-c", "-p", "-A", "-t", "-w", "-J", "-G", "-o", "-e", "--ntasks", "--nodes",
     "--cpus-per-task", "--gres", "--gpus", "--partition", "--account", "--time", "--mem",
     "--cpu-bind", "--mpi", "--ntasks-per-node", "--nodelist", "--output", "--error",
     "--job-name", "--container-image", "--container-mounts", "--gpus-per-task", "--export")
)  # fmt: skip
_WORDS = ScriptWords({"srun": _SRUN_VALUES}, "${SLURM_")


def translate(text: str) -> Translated:
    """A job script's header and the lines that a person would copy into runyard.yaml."""
    translated = Translated()
    header: dict[str, str] = {}
    body: list[str] = []
    for line in _joined(text):
        option = re.match(r"#SBATCH\s+(.*)", line)
        if option and not body:
            header |= _options(option[1])
        elif line and not line.startswith("#"):
            body.append(line)
    _read_header(header, translated)
    Body(translated, _WORDS).read(body)
    workers = [line for line in body if re.search(r"\bwandb agent\b", line)]
    if workers:
        by_srun = any(re.search(r"\bsrun\b", line) for line in workers)
        take_agents_from_nodes(translated.settings, in_each_task=by_srun)
    return translated


def _joined(text: str) -> list[str]:
    lines = (line.strip() for line in re.sub(r"\\\n\s*", " ", text).splitlines())
    # No command that a person wrote.
    return [line for line in lines if len(line) <= LONGEST_LINE]


def _options(words: str) -> dict[str, str]:
    """`--time=1h -p gpu` as a mapping from long names; what follows # is a comment."""
    try:
        split = shlex.split(words, comments=True)
    except ValueError:
        split = words.split()
    options: dict[str, str] = {}
    while split:
        word = split.pop(0)
        if not word.startswith("-"):  # The rest of a value that nobody quoted.
            continue
        name, _, value = word.lstrip("-").partition("=")
        if not word.startswith("--") and word.startswith("-"):
            name, value = _SHORT.get(word[1:2], word[1:2]), word[2:].lstrip("=")
        if not value and split and not split[0].startswith("-"):
            value = split.pop(0)
        options[name] = value
    return options


def _read_header(header: Mapping[str, str], translated: Translated) -> None:
    extra = []
    for name, value in header.items():
        if name in _OURS:
            translated.notes.append(f"--{name} is left out: {_OURS[name]}")
        elif name in _NAMES and _PLACEHOLDER.fullmatch(value):
            translated.notes.append(f"--{name}={value} is a placeholder, and is left out")
        elif name in _READERS:
            if not _READERS[name](value, translated.settings):
                translated.notes.append(f"--{name}={value} could not be read")
        else:
            extra.append(f"--{name}={value}" if value else f"--{name}")
    if extra:
        translated.settings["resources.extra"] = extra
    tasks = translated.settings.pop("ntasks", None)
    nodes = translated.settings.get("resources.nodes", 1)
    if tasks is not None and "resources.tasks_per_node" not in translated.settings and tasks > 1:
        if nodes and tasks % nodes == 0:
            translated.settings["resources.tasks_per_node"] = tasks // nodes
        else:
            translated.notes.append(f"--ntasks={tasks} does not go into {nodes} nodes evenly")
    per_cpu = translated.settings.pop("memory_per_cpu", None)
    if per_cpu is not None:
        cpus = translated.settings.get("resources.cpus", 1)
        tasks_a_node = translated.settings.get("resources.tasks_per_node", 1)
        translated.settings["resources.memory"] = short_memory(per_cpu * cpus * tasks_a_node)


_Reader = Callable[[str, dict[str, Any]], bool]


def _text(path: str) -> _Reader:
    def read(value: str, settings: dict[str, Any]) -> bool:
        settings[path] = value
        return bool(value)

    return read


def _whole(path: str) -> _Reader:
    def read(value: str, settings: dict[str, Any]) -> bool:
        number = read_whole(value)
        if number is None:
            return False
        settings[path] = number
        return True

    return read


def _words(path: str) -> _Reader:
    def read(value: str, settings: dict[str, Any]) -> bool:
        settings[path] = [word for word in value.split(",") if word]
        return bool(value)

    return read


def _time(value: str, settings: dict[str, Any]) -> bool:
    # A bare number is minutes to Slurm.
    minutes = read_whole(value)
    seconds = read_seconds(value) if minutes is None else minutes * 60.0
    if not seconds:
        return False
    settings["resources.time"] = short_time(seconds)
    return True


def _mebibytes(value: str) -> int | None:
    """Slurm's memory: a bare number is megabytes, and K is a unit too."""
    match = re.fullmatch(r"(\d{1,18})([KMGT]?)B?", value.strip(), re.IGNORECASE)
    if not match:
        return None
    units = {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024**2}
    return round(int(match[1]) * units[match[2].upper()])


def _memory(path: str, *, as_text: bool = True) -> _Reader:
    def read(value: str, settings: dict[str, Any]) -> bool:
        amount = _mebibytes(value)
        if amount is None:
            return False
        settings[path] = (short_memory(amount) if amount else 0) if as_text else amount
        return True

    return read


def _gpus(value: str, settings: dict[str, Any]) -> bool:
    """`4`, `a100:2`, `gpu`, `gpu:2`, `gpu:a100:2`, `gpu:a100`."""
    parts = value.split("(")[0].split(":")
    if parts[0] == "gpu":
        parts = parts[1:]
    count: int | None = 1
    if parts and parts[-1].isdecimal():
        count = read_whole(parts.pop())
    if len(parts) > 1 or count is None or "," in value:
        return False
    settings["resources.gpus"] = count
    if parts:
        settings["resources.gpu_type"] = parts[0]
    return True


def _array(value: str, settings: dict[str, Any]) -> bool:
    indices, _, throttle = value.partition("%")
    count = 0
    for part in indices.split(","):
        match = re.fullmatch(r"(\d{1,10})(?:-(\d{1,10})(?::(\d{1,10}))?)?", part)
        if not match:
            return False
        first, last = int(match[1]), int(match[2] or match[1])
        count += len(range(first, last + 1, max(1, int(match[3] or 1))))
    settings["agents.count"] = count
    if read_whole(throttle):
        settings["agents.at_once"] = read_whole(throttle)
    return count > 0


_READERS: dict[str, _Reader] = {
    "job-name": _text("name"),
    "time": _time,
    "partition": _text("resources.partition"),
    "account": _text("resources.account"),
    "qos": _text("resources.qos"),
    "constraint": _text("resources.constraint"),
    "reservation": _text("resources.reservation"),
    "nodes": _whole("resources.nodes"),
    "ntasks": _whole("ntasks"),
    "ntasks-per-node": _whole("resources.tasks_per_node"),
    "cpus-per-task": _whole("resources.cpus"),
    "mem": _memory("resources.memory"),
    "mem-per-gpu": _memory("resources.memory_per_gpu"),
    "mem-per-cpu": _memory("memory_per_cpu", as_text=False),
    "gres": _gpus,
    "gpus": _gpus,
    "gpus-per-node": _gpus,
    "gpus-per-task": _gpus,
    "array": _array,
    "mail-type": _words("resources.mail"),
    "mail-user": _text("resources.mail_to"),
    "exclude": _words("resources.exclude"),
}

SCRIPTS = ScriptReader(
    (".sbatch", ".slurm", ".job", ".batch", ".sub"),
    re.compile(r"^#SBATCH\s", re.MULTILINE),
    translate,
)
