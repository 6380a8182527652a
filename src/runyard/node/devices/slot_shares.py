"""What each slot has of the node: GPU, CPUs, threads, memory, ports. Arithmetic only.

Told to programs, and where the kernel has a means that cannot break them (CPU affinity), held to.
Memory is told and not enforced: a limit on address space stops CUDA, which reserves terabytes of
it, and the control groups of a job belong to the scheduler.
"""

from __future__ import annotations

import math

from runyard.schedulers.inside import this_job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeVar

    _Item = TypeVar("_Item")

PORTS_EACH = 16
# Below the ports that kernels hand out for outgoing connections.
FIRST_PORT, LAST_PORT = 15000, 32000
# Where a slot grows by itself, at most so many share a GPU.
MOST_PER_GPU = 32
# Of a GPU's memory, what programs together may take; the rest is the driver's and MPS'.
USABLE_MEMORY = 0.9
_GIB = 1 << 30
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


class Share:
    """Of one slot. `together`: how many share its GPU; with `grows`, only as they begin.

    `crowd`: how many have the same CPUs because there are too few for one each.
    """

    __slots__ = ("cpus", "crowd", "gpus", "grows", "ports", "together")

    def __init__(
        self,
        gpus: tuple[str, ...] = (),
        cpus: tuple[int, ...] = (),
        ports: tuple[int, int] = (FIRST_PORT, FIRST_PORT + PORTS_EACH - 1),
        together: int = 1,
        grows: bool = False,
        crowd: int = 1,
    ) -> None:
        self.gpus = gpus
        self.cpus = cpus
        self.ports = ports
        self.together = together
        self.grows = grows
        self.crowd = crowd


def share_out(
    gpus: Sequence[str],
    cpus: Sequence[int],
    *,
    slots: int | None,
    per_gpu: int | str | None,
    first_port: int = FIRST_PORT,
) -> list[Share]:
    """The shares of an agent's slots.

    `per_gpu`: so many on each GPU, or `auto`, which begins with one and grows up to what there are
    CPUs for; `slots`: so many in all, with `per_gpu` at most so many. Neither: one for each GPU.
    """
    if per_gpu is None and slots is not None and slots < len(gpus):
        # Fewer programs than GPUs: each has several.
        tied = [_part(gpus, index, slots) for index in range(slots)]
        return [
            Share(names, _part(cpus, index, slots), _ports(first_port, index))
            for index, names in enumerate(tied)
        ]
    # Without a GPU, programs share the CPUs in the same way.
    places: list[tuple[str, ...]] = [(gpu,) for gpu in gpus] or [()]
    each, grows = _each(len(places), len(cpus), slots, per_gpu), per_gpu == "auto"
    shares: list[Share] = []
    # One on every GPU before a second on any: the first slots are the first to ask.
    for place in range(each):
        for number, names in enumerate(places):
            index = len(shares)
            if slots is not None and index >= slots:
                break
            theirs = _part(cpus, number, len(places))
            own = theirs if grows else _part(theirs, place, each)
            crowd = each if len(theirs) < each else 1
            shares.append(Share(names, own, _ports(first_port, index), each, grows, crowd))
    return shares


def _each(gpus: int, cpus: int, slots: int | None, per_gpu: int | str | None) -> int:
    if per_gpu == "auto":
        # One CPU for each program, never less.
        most = max(1, min(MOST_PER_GPU, cpus // gpus))
        return most if slots is None else min(most, math.ceil(slots / gpus))
    if per_gpu is None:
        return 1 if slots is None else math.ceil(slots / gpus)
    return int(per_gpu)


def _part(items: Sequence[_Item], index: int, count: int) -> tuple[_Item, ...]:
    """The index-th of `count` equal parts; where there are too few for one each, all of them."""
    if len(items) < count:
        return tuple(items)
    begin, end = (len(items) * place // count for place in (index, index + 1))
    return tuple(items[begin:end])


def _ports(first: int, index: int) -> tuple[int, int]:
    low = first + index * PORTS_EACH
    if low + PORTS_EACH > LAST_PORT:
        low = FIRST_PORT + (low - FIRST_PORT) % (LAST_PORT - FIRST_PORT - PORTS_EACH)
    return low, low + PORTS_EACH - 1


def variables(
    share: Share,
    index: int,
    environ: Mapping[str, str],
    *,
    slots: int,
    together: int,
    variable: str,
    memory_mb: int | None,
    port: int,
) -> dict[str, str]:
    """What a slot's program is told; what the user has set stays as it is.

    `slots` are all of the agent's at this time, `together` those on the same GPU.
    """
    low, high = share.ports
    settings = {"RUNYARD_SLOT": str(index), "RUNYARD_PORTS": f"{low}-{high}"}
    if memory_mb is not None:
        settings["RUNYARD_MEMORY_MB"] = str(memory_mb // max(1, slots))
    if share.gpus:
        settings[variable] = ",".join(share.gpus)
    is_alone = slots == 1 and not share.grows
    if not is_alone or share.gpus:
        settings.update(_unset(environ, _limits(share, together, slots)))
    if is_alone and not _is_one_of_many_tasks(environ):
        # As if nobody had started it: with `RANK` or `LOCAL_RANK` set, programs believe that a
        # launcher did, and start no processes of their own (Lightning) or want NCCL (nanoGPT).
        return settings
    # Programs that share a step are no ranks of each other, whatever its variables say.
    settings.update(
        RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", LOCAL_WORLD_SIZE="1",
        MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
    )  # fmt: skip
    return settings


def _is_one_of_many_tasks(environ: Mapping[str, str]) -> bool:
    """Whether the agent is one of several that the scheduler started at once."""
    job = this_job(environ)
    return job.tasks != 1 or job.rank != 0


def _limits(share: Share, together: int, slots: int) -> dict[str, str]:
    crowd = together if share.grows else share.crowd
    threads = max(1, len(share.cpus) // crowd) if share.cpus else 1
    limits = dict.fromkeys(_THREADS, str(threads)) if slots > 1 or together > 1 else {}
    if share.grows:
        # JAX would take three quarters of the card for the first, before anybody can measure it.
        limits["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
        limits["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"
    elif together > 1:
        limits["XLA_PYTHON_CLIENT_MEM_FRACTION"] = f"{math.floor(90 / together) / 100:.2f}"
        limits["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"
    return limits


def _unset(environ: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in wanted.items() if name not in environ}


def how_many_fit(total: int, peak: int, usable: float = USABLE_MEMORY) -> int:
    """Programs that fit one GPU: its memory over the peak of one, rounded up. At least one."""
    return max(1, int(total * usable) // rounded_peak(peak))


def rounded_peak(peak: int) -> int:
    """Up to whole GiB. Below half a GiB up to tenths: small programs may be many."""
    step = _GIB if peak >= _GIB // 2 else _GIB // 10
    return math.ceil(max(1, peak) / step) * step
