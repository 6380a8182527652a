"""What in a project's folder is code, and what is not: by git where there is git."""

from __future__ import annotations

import os
import stat
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from runyard.file_trust import find_marked

# A larger file is no source.
LARGEST_CODE = 10_000_000
_MOST_LINKS = 2_000
_DATA_SUFFIXES = frozenset(
    {
        ".arrow", ".avi", ".bin", ".bz2", ".ckpt", ".db", ".feather", ".gguf", ".gz", ".h5",
        ".hdf5", ".img", ".lmdb", ".mat", ".mov", ".mp4", ".msgpack", ".nc", ".npy", ".npz",
        ".onnx", ".parquet", ".pb", ".pickle", ".pkl", ".pt", ".pth", ".rar", ".safetensors",
        ".sif", ".simg", ".sqlite", ".sqsh", ".tar", ".tfrecord", ".tfrecords", ".tgz", ".wav",
        ".webm", ".xz", ".zarr", ".zip", ".zst", ".7z",
    }
)  # fmt: skip
# Made by tools, wanted by nobody.
_RUBBISH = frozenset(
    {
        "__pycache__", ".git", ".hg", ".svn", ".mypy_cache", ".pytest_cache", ".ruff_cache",
        ".ipynb_checkpoints", ".tox", ".nox", ".DS_Store", ".eggs", ".cache",
    }
)  # fmt: skip
# Made by runs, and by nobody ignored yet: what jobs left must not be taken for new code.
_RESULT_FOLDERS = frozenset({"sweeps", "wandb", "hpc_outputs", "lightning_logs", "mlruns"})
# Without git nobody has said what is data: folders of these names are.
_DATA_FOLDERS = frozenset(
    {
        "data", "dataset", "datasets", "checkpoints", "ckpts", "outputs", "output", "results",
        "runs", "logs", "wandb", "sweeps", "models", "artifacts", "hpc_outputs", "venv", ".venv",
        "env", "node_modules", "mlruns", "lightning_logs",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Listing:
    """Paths from the root. `large` are those of the links that would be code, were they smaller."""

    code: tuple[str, ...]
    links: tuple[str, ...]
    large: tuple[str, ...]
    size: int
    commit: str | None


def list_project(root: Path) -> Listing:
    files = _by_git(root)
    return files if files is not None else _by_walking(root)


@dataclass
class _SortedOut:
    """What was seen of a project so far."""

    code: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    large: list[str] = field(default_factory=list)
    size: int = 0

    def add(self, root: Path, path: str) -> None:
        kind, length = _measure(root / path, path)
        if kind == "code":
            self.code.append(path)
            self.size += length
        elif kind == "large":
            self.links.append(path)
            self.large.append(path)
        elif kind == "folder":  # Another repository inside of this one.
            self.links.append(path.rstrip("/"))

    def listing(self, commit: str | None) -> Listing:
        links = tuple(dict.fromkeys(self.links[:_MOST_LINKS]))
        return Listing(tuple(self.code), links, tuple(self.large), self.size, commit)


def _by_git(root: Path) -> Listing | None:
    if not any(find_marked(root, ".git")):
        return None
    tracked = _git(root, "ls-files", "-z", "--cached")
    new = _git(root, "ls-files", "-z", "--others", "--exclude-standard")
    ignored = _git(
        root, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"
    )
    if tracked is None or new is None or ignored is None:
        return None
    known = set(tracked)
    sorted_out, results = _SortedOut(), set[str]()
    for path in dict.fromkeys((*tracked, *new)):
        if path not in known and _is_rubbish(path):
            continue
        above = None if path in known else _result_folder(path)
        if above is not None:
            results.add(above)
            continue
        sorted_out.add(root, path)
    bare = (path.rstrip("/") for path in ignored)
    sorted_out.links += (*sorted(results), *(path for path in bare if not _is_rubbish(path)))
    commit = _git(root, "rev-parse", "HEAD", separator="\n")
    return sorted_out.listing(commit[0] if commit else None)


def _by_walking(root: Path) -> Listing:
    sorted_out, waiting = _SortedOut(), [""]
    while waiting:
        above = waiting.pop()
        with os.scandir(root / above) as entries:
            for entry in sorted(entries, key=lambda item: item.name):
                path = f"{above}{entry.name}"
                if entry.name in _RUBBISH or entry.name.endswith(".pyc"):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    is_data = entry.name in _DATA_FOLDERS or (root / path / "pyvenv.cfg").exists()
                    if is_data:
                        sorted_out.links.append(path)
                    else:
                        waiting.append(f"{path}/")
                    continue
                sorted_out.add(root, path)
    return sorted_out.listing(None)


def _is_rubbish(path: str) -> bool:
    return bool(_RUBBISH.intersection(path.split("/"))) or path.endswith((".pyc", ".egg-info"))


def _result_folder(path: str) -> str | None:
    """Of a file that git does not know: the folder of results that it lies in, if it does."""
    parts = path.split("/")[:-1]
    for place, part in enumerate(parts):
        if part in _RESULT_FOLDERS:
            return "/".join(parts[: place + 1])
    return None


def _measure(path: Path, name: str) -> tuple[str, int]:
    try:
        status = path.lstat()
    except OSError:
        return "gone", 0
    if stat.S_ISDIR(status.st_mode):
        return "folder", 0
    if stat.S_ISLNK(status.st_mode):
        return "code", 0
    if not stat.S_ISREG(status.st_mode):
        return "gone", 0
    suffix = name[name.rfind(".") :].lower() if "." in name.rsplit("/", 1)[-1] else ""
    is_data = status.st_size > LARGEST_CODE or (
        suffix in _DATA_SUFFIXES and status.st_size > 100_000
    )
    return ("large" if is_data else "code"), status.st_size


def _git(root: Path, *words: str, separator: str = "\0") -> list[str] | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *words], capture_output=True, check=False, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return None
    if done.returncode:
        return None
    text = os.fsdecode(done.stdout)
    return [part for part in text.split(separator) if part]
