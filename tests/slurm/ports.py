"""A block of TCP ports that no other cluster on this machine will take."""

from __future__ import annotations

import contextlib
import random
import socket
from dataclasses import dataclass
from pathlib import Path

# Runyard's servers and ranks choose among those from 15,000 up, and look no longer than a moment.
LOWEST_PORT, HIGHEST_PORT = 10_000, 15_000
EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


@dataclass(frozen=True)
class PortBlock:
    """Consecutive ports, reserved until `release` is called or this process ends."""

    first: int
    claims: tuple[socket.socket, ...]

    def release(self) -> None:
        for claim in self.claims:
            claim.close()


def reserve_ports(count: int) -> PortBlock:
    """Reserve `count` free ports in a row, below the range the kernel hands out by itself."""
    starts = list(range(LOWEST_PORT, _first_ephemeral_port() - count + 1, count))
    random.shuffle(starts)
    for first in starts:
        block = _claim_block(first, count)
        if block:
            return block
    raise OSError(f"no {count} free ports in a row from {LOWEST_PORT} up")


def _first_ephemeral_port() -> int:
    first = int(EPHEMERAL_RANGE.read_text().split()[0])
    # Some containers hand out nearly every port: then being free now must be enough.
    return min(first, HIGHEST_PORT) if first > LOWEST_PORT + 1000 else 65_536


def _claim_block(first: int, count: int) -> PortBlock | None:
    with contextlib.ExitStack() as undo:
        claims = []
        for port in range(first, first + count):
            claim = undo.enter_context(socket.socket(socket.AF_UNIX))
            try:
                # The daemons bind the port much later. A name in the abstract socket space marks
                # it as taken until then: exclusive at once, and gone with this process.
                claim.bind(f"\0slurm-test-port-{port}")
                _check_unbound(port)
            except OSError:
                return None
            claims.append(claim)
        undo.pop_all()
        return PortBlock(first, tuple(claims))


def _check_unbound(port: int) -> None:
    with socket.socket(socket.AF_INET) as probe:
        probe.bind(("", port))
