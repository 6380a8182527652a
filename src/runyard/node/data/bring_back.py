"""What programs left in the copy of the code in which they ran is brought to the project.

    python -m runyard.node.data.bring_back MANIFEST

Run by a job at its end. A program that writes `model.pt` into its working folder finds it in the
project's folder afterwards, as if it had run there. Another job may still be writing: a file that
is moved stays the same file, and a link to it stays where it was.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import socket
import sys
import time

from runyard.schedulers.inside import this_job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_RUBBISH = ("__pycache__", ".ipynb_checkpoints", ".pytest_cache", ".mypy_cache")
_CLAIM = ".runyard-claim-"
# A claim lasts for two renames. One that is older belongs to a job that was killed between them:
# its file is brought under the claim's name, so that it is not lost.
_CLAIM_SECONDS = 600.0


def bring_back(manifest_file: str) -> list[str]:
    """The paths of what was brought, from the project's root."""
    with open(manifest_file, encoding="utf-8") as file:
        manifest: dict[str, Any] = json.load(file)
    tree = f"{os.path.dirname(manifest_file)}/{manifest['tree']}"
    root = manifest["root"]
    known = set(manifest["files"])
    for path in manifest["files"]:
        above = os.path.dirname(path)
        while above and above not in known:
            known.add(above)
            above = os.path.dirname(above)
    brought: list[str] = []
    waiting = [""]
    now = time.time()
    while waiting:
        above = waiting.pop()
        with contextlib.suppress(FileNotFoundError), os.scandir(f"{tree}/{above}") as entries:
            for entry in list(entries):
                path = f"{above}{entry.name}"
                if entry.name in _RUBBISH or entry.name.endswith(".pyc") or entry.is_symlink():
                    continue
                if entry.is_dir():
                    waiting.append(f"{path}/")
                elif path in known or not entry.is_file() or _is_claimed(entry, now):
                    continue
                elif _bring(f"{tree}/{path}", f"{root}/{path}"):
                    brought.append(path)
    return brought


def _bring(source: str, target: str) -> bool:
    """Whether there was something to bring."""
    folder = os.path.dirname(target)
    os.makedirs(folder, exist_ok=True)
    try:
        ours, theirs = os.stat(source), None
    except FileNotFoundError:
        return False
    with contextlib.suppress(FileNotFoundError):
        theirs = os.stat(target)
    if theirs is not None and (theirs.st_mtime_ns, theirs.st_size) == (
        ours.st_mtime_ns,
        ours.st_size,
    ):
        return False
    if theirs is not None and theirs.st_mtime > ours.st_mtime:
        # What the user has made meanwhile under this name is not ours to replace.
        target = f"{target}.from-job-{this_job().own_id or os.getpid()}"
    if ours.st_dev == os.stat(folder).st_dev:
        return _move(source, target)
    _copy(source, target)
    return True


def _move(source: str, target: str) -> bool:
    # Jobs that end together see the same file. Only one of them can rename it to a name of its
    # own; a second one would move the first one's link onto the file and so destroy it.
    claim = f"{source}{_CLAIM}{_this_process()}"
    try:
        os.rename(source, claim)
    except FileNotFoundError:
        return False
    if os.path.islink(claim):
        _give_back(claim, source)
        return False
    try:
        os.rename(claim, target)
    except OSError as error:
        _give_back(claim, source)
        if error.errno != errno.EXDEV:
            raise
        _copy(source, target)
        return True
    with contextlib.suppress(FileExistsError):
        os.symlink(target, source)
    return True


def _copy(source: str, target: str) -> None:
    # Not removed: who is still writing goes on there, and brings it at its own end.
    aside = f"{target}.runyard-{_this_process()}"
    shutil.copy2(source, aside)
    os.replace(aside, target)


def _give_back(claim: str, source: str) -> None:
    """The claimed file has its name again, unless a program has made a new one meanwhile."""
    if not os.path.lexists(source):
        os.rename(claim, source)


def _is_claimed(entry: os.DirEntry[str], now: float) -> bool:
    """Whether another job is moving this file just now."""
    try:
        return _CLAIM in entry.name and entry.stat().st_ctime > now - _CLAIM_SECONDS
    except FileNotFoundError:
        return True


def _this_process() -> str:
    return f"{socket.gethostname()}-{os.getpid()}"


def main() -> int:
    try:
        brought = bring_back(sys.argv[1])
    except (OSError, ValueError, KeyError) as error:
        print(f"runyard: what programs left in {sys.argv[1:]} stays there: {error}", flush=True)
        return 1
    if brought:
        more = f" and {len(brought) - 5} more" if len(brought) > 5 else ""
        print(f"runyard: brought to the project: {', '.join(brought[:5])}{more}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
