"""Two ranks of a program on this machine, begun as torchrun or runyard would begin them."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from runyard.node.ranks.ports import Port
from tests.train.frameworks import program_environment

LONGEST = 600.0  # A guard against a hang, never a measure.


@dataclass
class Ended:
    """A program that is through."""

    returncode: int
    stdout: str
    stderr: str


def run_ranks(python: Path, program: Path, words: Sequence[str], **more: str) -> list[Ended]:
    """Both to their end. Begun afresh: ranks forked with torch loaded have been seen to hang."""
    with Port() as meeting:  # Held: other tests look for ports at the same time.
        return _run_at(str(meeting.number), python, program, words, more)


def _run_at(
    port: str, python: Path, program: Path, words: Sequence[str], more: Mapping[str, str]
) -> list[Ended]:
    started = [
        subprocess.Popen(
            [str(python), str(program), *words],
            env=program_environment(
                RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK=str(rank),
                MASTER_ADDR="127.0.0.1", MASTER_PORT=port, **more,
            ),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    try:
        said = [rank.communicate(timeout=LONGEST) for rank in started]
    finally:
        for rank in started:
            rank.kill()
            rank.communicate()  # Its pipes are closed, also after a timeout.
    return [Ended(rank.returncode, *texts) for rank, texts in zip(started, said, strict=True)]
