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
    """Both to their end. Begun afresh: ranks forked with torch loaded have been seen to hang.

    Rank 0 listens at the port only when it has loaded torch, on a busy machine a minute later. By
    then a server may have it, whose ports are of the same range: both are begun at another one.
    """
    while True:
        with Port() as meeting:  # Held: other tests look for ports at the same time.
            ended = _run_at(meeting.number, python, program, words, more)
        if not _is_port_taken(ended[0]):
            return ended


def _run_at(
    port: int, python: Path, program: Path, words: Sequence[str], more: Mapping[str, str]
) -> list[Ended]:
    ranks = [
        subprocess.Popen(
            [str(python), str(program), *words],
            env=program_environment(
                RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK=str(rank),
                MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), **more,
            ),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    try:
        ended = [_end(ranks[0])]
        if _is_port_taken(ended[0]):
            ranks[1].kill()  # It would wait half an hour for rank 0.
        return [*ended, _end(ranks[1])]
    except subprocess.TimeoutExpired:
        texts = [_kill(rank) for rank in ranks]
        raise AssertionError("\n== the other rank:\n".join(["ranks hang", *texts])) from None
    finally:
        for rank in ranks:
            _kill(rank)


def _end(rank: subprocess.Popen[str]) -> Ended:
    output, errors = rank.communicate(timeout=LONGEST)
    return Ended(rank.returncode, output, errors)


def _kill(rank: subprocess.Popen[str]) -> str:
    """What it said on its errors' stream. Its pipes are closed, also after a timeout."""
    rank.kill()
    return rank.communicate()[1]


def _is_port_taken(rank: Ended) -> bool:
    return rank.returncode != 0 and "EADDRINUSE" in rank.stderr
