"""Work on many parts, in processes that are forked for it: Python's threads would take turns."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TypeVar

Part = TypeVar("Part")


class Damaged(ValueError):
    """What was read is not what was written."""


def in_processes(
    parts: Sequence[Part], workers: int, work: Callable[[Part], int], tell: Callable[[int], None]
) -> None:
    """Do the work on every part, in forked processes; the first error is raised."""
    reading, writing = os.pipe()
    pids = []
    for number in range(min(workers, max(1, len(parts)))):
        pid = os.fork()
        if not pid:
            os.close(reading)
            os._exit(_one_process(parts[number::workers], work, writing))
        pids.append(pid)
    os.close(writing)
    wrong: list[ValueError] = []
    with os.fdopen(reading, "rb") as lines:
        for line in lines:
            word, _, why = line.decode(errors="replace").rstrip("\n").partition(" ")
            if why:
                wrong.append((Damaged if word == "damaged" else ValueError)(why))
            else:
                tell(int(word))
    codes = [os.waitpid(pid, 0)[1] for pid in pids]
    if wrong:
        raise wrong[0]
    if any(codes):
        raise ValueError("a process that packs or unpacks was killed: is there enough memory?")


def _one_process(parts: Sequence[Part], work: Callable[[Part], int], writing: int) -> int:
    try:
        for part in parts:
            os.write(writing, b"%d\n" % work(part))
    except (OSError, ValueError) as error:
        word = "damaged" if isinstance(error, Damaged) else "failed"
        os.write(writing, f"{word} {error}"[:500].replace("\n", " ").encode() + b"\n")
        return 1
    except BaseException:
        return 2
    return 0
