"""Stand-ins for names in a file that leaves a site: people, hosts, accounts, a lab's partitions.

One name has one stand-in everywhere, so what belongs together still does. A name of common words
alone (gpu-long) tells nothing about anybody, and stays.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

_COMMON = frozenset({
    "all", "any", "array", "backfill", "base", "batch", "big", "bigmem", "compute", "core", "cores",
    "cpu", "cpubase", "cpus", "cuda", "day", "days", "debug", "default", "dev", "devel",
    "development", "dgx", "dual", "exclusive", "express", "fast", "fat", "free", "general", "gpu",
    "gpubase", "gpus", "guest", "half", "hi", "high", "highmem", "hour", "hours", "huge", "idle",
    "infinite", "interactive", "job", "jobs", "large", "largemem", "lg", "lo", "long", "low",
    "main", "max", "med", "medium", "mem", "memory", "mi", "mid", "mig", "min", "mini", "multi",
    "node", "nodes", "none", "normal", "only", "open", "opportunistic", "other", "overflow",
    "parallel", "part", "partial", "partition", "preempt", "preemptable", "preempted",
    "preemptible", "prio", "priority", "prod", "production", "qos", "quad", "queue", "quick",
    "regular", "requeue", "rtx", "scavenge", "scavenger", "serial", "shared", "short", "single",
    "slow", "small", "smp", "spot", "standard", "std", "test", "testing", "tiny", "unlimited",
    "unpreemptible", "urgent", "vis", "visu", "viz", "week", "weeks", "whole", "xl",
})  # fmt: skip
_ROOTS = frozenset({
    "apps", "bin", "cvmfs", "data", "dev", "etc", "global", "gpfs", "home", "homes", "lib", "local",
    "localscratch", "lscratch", "lustre", "media", "mnt", "net", "nfs", "node_tmp", "opt", "p",
    "proc", "project", "projects", "pscratch", "run", "scratch", "shared", "shm", "srv", "storage",
    "sw", "sys", "tmp", "users", "usr", "var", "work",
})  # fmt: skip
_FILE_ENDINGS = frozenset({
    "conf", "json", "log", "py", "sh", "sif", "so", "toml", "txt", "yaml", "yml",
})  # fmt: skip
# Hosts of everybody, which a node is asked to reach.
_PUBLIC = ("api.wandb.ai", "github.com")

_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_URL = re.compile(r"://(?:[^/\s]*@)?([^/\s:@]+)(:\d+)?(/[^\s;,)]+)?")
_ADDRESS = re.compile(
    r"\b\d{1,3}(?:\.\d{1,3}){3}\b|\b(?:[0-9a-f]{1,4}:){3,}[0-9a-f:]*"
    r"|\b(?:[0-9a-f]{1,4}:)+(?::[0-9a-f]{1,4})+\b", re.I,
)  # fmt: skip
_HOST = re.compile(r"\b[a-z][\w-]*(?:\.[a-z][\w-]*)+\b", re.I)
_PATH = re.compile(r"(?<![\w./])/[\w.+@%~-]+(?:/[\w.+@%~-]*)*")


# Of these a lab's own name is told from what every site has.
_OFTEN_COMMON = ("partition", "qos")
_HIDDEN = "(hidden)"
_ANYBODY = ("ALL", "N/A", "NONE", "(null)")


class StandIns:
    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._counts: Counter[str] = Counter()
        self._stems: set[str] = set()

    @property
    def count(self) -> int:
        return len(self._known)

    def of(self, kind: str, name: str) -> str:
        """The stand-in of a name: user1. A partition of common words alone keeps its name."""
        if not name or (kind in _OFTEN_COMMON and _is_common(name)):
            return name
        if name not in self._known:
            self._counts[kind] += 1
            self._known[name] = f"{kind}{self._counts[kind]}"
        return self._known[name]

    def of_all(self, kind: str, names: str) -> str:
        """The same for a list with commas between."""
        return ",".join(
            name if name in _ANYBODY else self.of(kind, name) for name in names.split(",")
        )

    def nodes(self, names: str) -> None:
        """Names of nodes as Slurm lists them: gc[001-020],login3. All whose name begins as one of
        theirs are hidden."""
        for name in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", names):
            stem = re.sub(r"\[.*|\d+$", "", name)
            if stem == name:
                self.of("host", name)
            elif not _is_common(stem):
                self._stems.add(re.escape(stem))

    def folders(self, paths: Iterable[str]) -> None:
        """Paths that do not show by themselves where they end: of a folder called `my lab`."""
        for path in paths:
            if path.startswith("/") and ":" not in path and not _PATH.fullmatch(path):
                self._known.setdefault(path, _without_names(path))

    def hide(self, names: Iterable[str], *, shortest: int) -> None:
        """Names that nobody needs to tell apart: secrets, what a person is called."""
        for name in names:
            if len(name) >= shortest:
                self._known.setdefault(name, _HIDDEN)

    def text(self, text: str) -> str:
        """A text without names: those that are known, and what looks like one."""
        # A user called max is no reason to change every max.
        telling = [
            re.escape(name)
            for name, stand_in in self._known.items()
            if stand_in == _HIDDEN or not _is_common(name)
        ]
        if telling:
            longest_first = "|".join(sorted(telling, key=len, reverse=True))
            names = re.compile(rf"(?<!\w)(?:{longest_first})(?!\w)")
            text = names.sub(lambda match: self._known[match[0]], text)
        if self._stems:
            some = "|".join(sorted(self._stems, key=len, reverse=True))
            text = re.sub(rf"(?<!\w)(?:{some})[\d\[][\w\[\],-]*", "(nodes)", text)
        text = _URL.sub(self._url, text)
        text = _EMAIL.sub("someone@example.org", text)
        text = _ADDRESS.sub("(address)", text)
        text = _PATH.sub(lambda match: _without_names(match[0]), text)
        return _HOST.sub(lambda match: self._host(match[0]), text)

    def values(self, value: Any) -> Any:
        """The same for every text in a JSON value."""
        if isinstance(value, dict):
            return {name: self.values(part) for name, part in value.items()}
        if isinstance(value, list | tuple):
            return [self.values(part) for part in value]
        return self.text(value) if isinstance(value, str) else value

    def _url(self, match: re.Match[str]) -> str:
        """Who logs in and which page is nobody's affair."""
        return f"://{self._host(match[1])}{match[2] or ''}{'/…' if match[3] else ''}"

    def _host(self, name: str) -> str:
        is_file = name.rpartition(".")[2].lower() in _FILE_ENDINGS
        if name in _PUBLIC or is_file or name in self._known.values():
            return name
        return self.of("host", name)


def _is_common(name: str) -> bool:
    runs = re.findall(r"[^\W\d_]+", name.lower())
    return all(len(run) == 1 or run in _COMMON for run in runs)


def _without_names(path: str) -> str:
    """The first folder, if every cluster may have it."""
    first, slash, rest = path[1:].partition("/")
    if first not in _ROOTS:
        return "/…"
    return f"/{first}/…" if rest else f"/{first}{slash}"
