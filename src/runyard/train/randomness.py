"""The random states of Python, numpy and torch, and seeds that differ by rank."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from runyard.train.frameworks import loaded

# Seeds are small numbers in practice: no two (seed, rank) meet.
_BETWEEN_RANKS = 1_000_003
_SEEDS = 2**32


def seed_of_rank(seed: int, rank: int) -> int:
    """Rank 0 has the seed itself; every other rank one of its own."""
    return (seed + _BETWEEN_RANKS * rank) % _SEEDS


def seed_everything(seed: int) -> None:
    """Seed Python's generator, and those of the libraries that are loaded."""
    import_module("random").seed(seed)
    if (numpy := loaded("numpy")) is not None:
        numpy.random.seed(seed)
    if (torch := loaded("torch")) is not None:
        torch.manual_seed(seed)


def random_states() -> dict[str, Any]:
    """The state of every generator that the program may draw from without naming it."""
    states: dict[str, Any] = {}
    if (random := loaded("random")) is not None:
        states["python"] = random.getstate()
    if (numpy := loaded("numpy")) is not None:
        states["numpy"] = numpy.random.get_state(legacy=False)
    if (torch := loaded("torch")) is not None:
        states["torch"] = torch.get_rng_state()
        if torch.cuda.is_initialized():
            states["cuda"] = torch.cuda.get_rng_state_all()
    return states


def set_random_states(states: dict[str, Any]) -> None:
    """Put the generators back, as far as the libraries and devices are there."""
    if "python" in states:
        import_module("random").setstate(states["python"])
    if "numpy" in states and (numpy := loaded("numpy")) is not None:
        numpy.random.set_state(states["numpy"])
    torch = loaded("torch")
    if torch is None:
        return
    if "torch" in states:
        torch.set_rng_state(states["torch"])
    if torch.cuda.is_available():
        for device, state in enumerate(states.get("cuda", ())[: torch.cuda.device_count()]):
            torch.cuda.set_rng_state(state, device)
