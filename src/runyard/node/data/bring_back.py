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
import sys

from runyard.schedulers.inside import this_job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_RUBBISH = ("__pycache__", ".ipynb_checkpoints", ".pytest_cache", ".mypy_cache")


def bring_back(manifest_file: str) -> list[str]:
    """The paths of what was brought, from the project's root."""
    with open(manifest_file, encoding="utf-8") as file:  # noqa: PTH123
        manifest: dict[str, Any] = json.load(file)
    tree = f"{os.path.dirname(manifest_file)}/{manifest['tree']}"  # noqa: PTH120
    root = manifest["root"]
    known = set(manifest["files"])
    for path in manifest["files"]:
        above = os.path.dirname(path)  # noqa: PTH120
        while above and above not in known:
            known.add(above)
            above = os.path.dirname(above)  # noqa: PTH120
    brought: list[str] = []
    waiting = [""]
    while waiting:
        above = waiting.pop()
        with contextlib.suppress(FileNotFoundError), os.scandir(f"{tree}/{above}") as entries:
            for entry in list(entries):
                path = f"{above}{entry.name}"
                if entry.name in _RUBBISH or entry.name.endswith(".pyc") or entry.is_symlink():
                    continue
                if entry.is_dir():
                    waiting.append(f"{path}/")
                elif path in known or not entry.is_file():
                    continue
                elif _bring(f"{tree}/{path}", f"{root}/{path}"):
                    brought.append(path)
    return brought


def _bring(source: str, target: str) -> bool:
    """Whether there was something to bring."""
    os.makedirs(os.path.dirname(target), exist_ok=True)  # noqa: PTH103, PTH120
    ours, theirs = os.stat(source), None  # noqa: PTH116
    with contextlib.suppress(FileNotFoundError):
        theirs = os.stat(target)  # noqa: PTH116
    if theirs is not None and (theirs.st_mtime_ns, theirs.st_size) == (
        ours.st_mtime_ns,
        ours.st_size,
    ):
        return False
    if theirs is not None and theirs.st_mtime > ours.st_mtime:
        # What the user has made meanwhile under this name is not ours to replace.
        target = f"{target}.from-job-{this_job().own_id or os.getpid()}"
    try:
        os.rename(source, target)  # noqa: PTH104
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        # Not removed: who is still writing goes on there, and brings it at its own end.
        aside = f"{target}.runyard-{os.getpid()}"
        shutil.copy2(source, aside)
        os.replace(aside, target)  # noqa: PTH105
        return True
    with contextlib.suppress(FileExistsError):
        os.symlink(target, source)  # noqa: PTH211
    return True


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
