"""An agent's slots on this node, from what it was asked for and what the node has."""

from __future__ import annotations

import contextlib
import os
import socket

from runyard.node.devices import slot_shares
from runyard.node.devices.gpus import Gpus, ask_driver, find_gpus
from runyard.schedulers.inside import this_job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from runyard.node.devices.slot_shares import Share

_MIB = 1 << 20
_GROUPS = "/sys/fs/cgroup"


class Layout:
    """The slots' shares, and the variables of their programs."""

    def __init__(
        self, shares: list[Share], gpus: Gpus, cpus: list[int], memory_mb: int | None
    ) -> None:
        self.shares = shares
        self.gpus = gpus
        self._cpus = cpus
        self._memory_mb = memory_mb

    @property
    def grows(self) -> bool:
        """Whether it is to be found out how many share a GPU."""
        return self.shares[0].grows

    @property
    def packs(self) -> bool:
        """Whether several programs share a GPU, or may."""
        return bool(self.gpus.names) and any(share.together > 1 for share in self.shares)

    def variables(
        self, index: int, environ: Mapping[str, str], *, slots: int, together: int
    ) -> dict[str, str]:
        share = self.shares[index]
        return slot_shares.variables(
            share, index, environ, slots=slots, together=together, variable=self.gpus.variable,
            memory_mb=self._memory_mb, port=free_port(*share.ports),
        )  # fmt: skip

    @contextlib.contextmanager
    def pinned(self, index: int) -> Iterator[None]:
        """While it lasts, what is started has the slot's CPUs to itself.

        Only where slots were shared out for that: on a desktop, idle CPUs are anybody's.
        """
        share = self.shares[index]
        is_whole = len(self.shares) == 1 or len(share.cpus) >= len(self._cpus)
        # Asked last: it reads all variables, and this is between two trials.
        if is_whole or not (share.gpus or this_job().is_job):
            yield
            return
        # A new process inherits ours; nothing else of us runs meanwhile.
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, share.cpus)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                os.sched_setaffinity(0, self._cpus)


def lay_out(
    options: Mapping[str, str], environ: Mapping[str, str], report: Callable[[str], None]
) -> Layout:
    """`slots`, `per-gpu` and `gpus` as the agent was given them."""
    per_gpu = options.get("per-gpu")
    wish = options.get("gpus", "none" if per_gpu is None else "auto")
    gpus = find_gpus(wish, environ, ask_driver)
    if not gpus.names and wish != "none":
        report("no GPU is here: programs share the CPUs")
    cpus = _cpus()
    shares = slot_shares.share_out(
        gpus.names,
        cpus,
        slots=int(options["slots"]) if "slots" in options else None,
        per_gpu=per_gpu if per_gpu in (None, "auto") else int(per_gpu),
        # Not the same for every agent of a node: what is free is looked at, and is anybody's.
        first_port=slot_shares.FIRST_PORT
        + int.from_bytes(os.urandom(2), "big") % 1000 * slot_shares.PORTS_EACH,
    )
    if per_gpu != "auto" and len(shares) > len(cpus):
        report(
            f"{len(shares)} programs at a time have {len(cpus)} CPU{'s' * (len(cpus) > 1)}: less "
            f"than one each; -j {len(cpus)} gives each a whole one"
        )
    return Layout(shares, gpus, cpus, memory_mb(environ, len(cpus)))


def _cpus() -> list[int]:
    """Those that the job may use, not those that the machine has."""
    try:
        return sorted(os.sched_getaffinity(0))
    except AttributeError:  # Not Linux.
        return list(range(os.cpu_count() or 1))


def memory_mb(environ: Mapping[str, str], cpus: int) -> int | None:
    """What the job may use: the least of what scheduler, control groups and machine say."""
    sizes = [this_job(environ).memory_mb(cpus) or 0, *_group_limits()]
    with contextlib.suppress(OSError, ValueError):
        sizes.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // _MIB)
    return min((size for size in sizes if size > 0), default=None)


def _group_limits() -> list[int]:
    limits: list[int] = []
    with contextlib.suppress(OSError, ValueError), open("/proc/self/cgroup") as file:
        path = next(line.strip().split("::")[1] for line in file if line.startswith("0::"))
        while path.strip("/"):
            limit = f"{_GROUPS}{path}/memory.max"
            with contextlib.suppress(OSError, ValueError), open(limit) as text:
                limits.append(int(text.read()) // _MIB)
            path = path.rpartition("/")[0]
    return limits


def free_port(low: int, high: int) -> int:
    """The first port of a range that nobody listens on; the first where all are taken."""
    for port in range(low, high + 1):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("", port))
            return port
    return low
