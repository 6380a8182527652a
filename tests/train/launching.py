"""Starts the ranks of a program, as torchrun or runyard would."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.train.frameworks import program_environment


def run_ranks(
    python: Path, program: Path, words: Sequence[str], *, size: int = 2, **more: str
) -> list[subprocess.CompletedProcess[str]]:
    """Run all ranks to their end, in the order of ranks."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    started = [
        subprocess.Popen(
            [str(python), str(program), *words],
            env=program_environment(
                RANK=str(rank), WORLD_SIZE=str(size), LOCAL_RANK=str(rank),
                MASTER_ADDR="127.0.0.1", MASTER_PORT=port, **more,
            ),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for rank in range(size)
    ]  # fmt: skip
    ended = []
    for process in started:
        output, errors = process.communicate(timeout=300)
        ended.append(subprocess.CompletedProcess(process.args, process.returncode, output, errors))
    return ended
