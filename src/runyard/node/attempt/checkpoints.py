"""What a program has saved in the folder that survives it, as it can be seen from outside."""

from __future__ import annotations

import contextlib
import itertools
import json
import os

from runyard.save_protocol import GO_ON_NOTE, MANIFEST, USED_NOTE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_DEEPEST = 4
_MOST_BESIDE = 100
# Kernels stamp files with the time of their last tick, which may be this long ago.
_TICK = 0.01


def saved_at(folder: str) -> float | None:
    """When the newest checkpoint was made; None if there is none.

    One of `runyard.train` says it to the microsecond. Of any other the newest file tells.
    """
    newest: float | None = None
    exact: float | None = None
    for entry in _files(folder, _DEEPEST):
        with contextlib.suppress(OSError):
            if entry.name == MANIFEST:
                exact = max(filter(None, (exact, _said(entry.path))), default=None)
            newest = max(newest or 0.0, entry.stat().st_mtime + _TICK)
    return newest if exact is None else exact


def manifests(folder: str) -> list[str]:
    """Of the checkpoints that `runyard.train` made."""
    return [
        entry.path
        for entry in _files(folder, _DEEPEST)
        if entry.name == MANIFEST and _is_name_of_train(entry.path.split("/")[-2])
    ]


def chosen_at(manifest_files: list[str]) -> float | None:
    """When the checkpoint was made that `runyard.train` will go on from; None: it begins anew.

    Every byte is read: one that is damaged is passed over.
    """
    from pathlib import Path  # Where `runyard.train` has saved, and in a process of its own.

    from runyard.train import folders
    from runyard.train.errors import Damaged

    chosen: list[float] = []
    for root in {Path(name).parent.parent for name in manifest_files}:
        for entry in reversed(folders.saved(root)):
            with contextlib.suppress(Damaged):
                chosen.append(float(folders.verify(entry.path)["saved_at"]))
                break
    return max(chosen, default=None)


def has_saved(folder: str, since: float = 0.0) -> bool:
    """Whether there is a checkpoint, made since then."""
    for entry in _files(folder, _DEEPEST):
        with contextlib.suppress(OSError):
            if entry.stat().st_mtime + _TICK >= since:
                return True
    return False


def is_used(folder: str) -> bool:
    """Whether a program without a checkpoint here would have it here, and so begins anew.

    `runyard.train` says so; of others the trials beside it tell: SWEEP/TRIAL/checkpoints.
    """
    if os.path.exists(f"{folder}/{USED_NOTE}"):
        return True
    trial = os.path.dirname(folder)
    sweep, name = os.path.dirname(trial), os.path.basename(folder)
    with contextlib.suppress(OSError), os.scandir(sweep) as entries:
        beside = itertools.islice(entries, _MOST_BESIDE)
        return any(has_saved(f"{entry.path}/{name}") for entry in beside)
    return False


def asked_to_go_on(folder: str, since: float) -> bool:
    """Whether the program left the note that says so."""
    try:
        return os.stat(f"{folder}/{GO_ON_NOTE}").st_mtime + _TICK >= since
    except OSError:
        return False


def _is_name_of_train(name: str) -> bool:
    number, _, step = name.partition("-step-")
    return number.isdigit() and step.isdigit()


def _files(folder: str, depth: int) -> Iterator[os.DirEntry[str]]:
    """Files that are whole: what is written under a hidden name is renamed when it is done."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith((".", "damaged-")) or entry.name == GO_ON_NOTE:
                continue
            if entry.is_file(follow_symlinks=False):
                yield entry
            elif depth and entry.is_dir(follow_symlinks=False):
                yield from _files(entry.path, depth - 1)


def _said(path: str) -> float | None:
    with contextlib.suppress(OSError, ValueError, TypeError, AttributeError), open(path) as file:
        return float(json.load(file).get("saved_at"))
    return None
