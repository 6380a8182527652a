"""Talk between the ranks of one program: over torch's process group, JAX's processes, or alone.

Every function that talks must be called by every rank. Each call says what it is about, so that
ranks which got out of step hear of it at once, instead of waiting for each other until the limit.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from runyard.train.errors import TrainError
from runyard.train.frameworks import jax_group, loaded, torch_group

T = TypeVar("T")

# How often ranks ask each other whether to stop: often enough for any grace, too rarely to cost.
_SECONDS_BETWEEN_TALKS = 1.0


def rank() -> int:
    """This process among those of the program; 0 if it is alone."""
    if (group := torch_group()) is not None:
        return int(group.get_rank())
    if (jax := jax_group()) is not None:
        return int(jax.process_index())
    return 0


def size() -> int:
    """How many processes the program has."""
    if (group := torch_group()) is not None:
        return int(group.get_world_size())
    if (jax := jax_group()) is not None:
        return int(jax.process_count())
    return 1


def gather(about: str, value: T) -> list[T]:
    """Every rank's value, in the order of ranks, on every rank."""
    if size() == 1:
        return [value]
    group = torch_group()
    if group is not None:
        answers: list[Any] = [None] * size()
        group.all_gather_object(answers, (about, value))
    else:
        answers = _gather_with_jax((about, value))
    for other, (subject, _) in enumerate(answers):
        if subject != about:
            raise TrainError(
                f"the ranks are out of step: rank {rank()} is at {about!r}, "
                f"rank {other} is at {subject!r}",
                mend="call checkpoints, steps, should_stop, score and mean on every rank, "
                "not only on rank 0",
            )
    return [answer for _, answer in answers]


def from_rank_0(about: str, make: Callable[[], T]) -> T:
    """What rank 0 makes, on every rank. If it fails there, it fails on all of them, at once."""
    made: tuple[bool, Any] = (True, None)
    failure: BaseException | None = None
    if rank() == 0:
        try:
            made = (True, make())
        except BaseException as error:
            failure = error
            made = (False, f"{type(error).__name__}: {error}")
    worked, answer = gather(about, made)[0]
    if failure is not None:
        raise failure
    if not worked:
        raise TrainError(f"rank 0 failed at {about!r}", said=answer)
    result: T = answer
    return result


class Agreement(Generic[T]):
    """A question that every rank asks at every step, and that they talk about once a second.

    Rank 0 says after how many steps the next talk is: clocks differ, step counts do not.
    """

    def __init__(self, about: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._about = about
        self._clock = clock
        self._wait = 0
        self._chosen = 1
        self._last = clock()

    def ask(self, wish: Callable[[], T]) -> list[T] | None:
        """All ranks' wishes, or None where it is not time to talk yet."""
        if size() == 1:
            return [wish()]
        if self._wait > 1:
            self._wait -= 1
            return None
        now = self._clock()
        pace = max((now - self._last) / self._chosen, 1e-6)
        self._last = now
        # At most twice the last choice, so that one quick step does not mean a long silence.
        proposal = max(1, min(int(_SECONDS_BETWEEN_TALKS / pace), 2 * self._chosen))
        answers = gather(self._about, (wish(), proposal))
        self._chosen = self._wait = answers[0][1]
        return [answer for answer, _ in answers]


def _gather_with_jax(value: object) -> list[Any]:
    import numpy

    everyone = loaded("jax.experimental.multihost_utils")
    if everyone is None:
        from importlib import import_module

        everyone = import_module("jax.experimental.multihost_utils")
    data = numpy.frombuffer(pickle.dumps(value), numpy.uint8)
    lengths = everyone.process_allgather(numpy.array([len(data)])).reshape(-1)
    padded = numpy.zeros(int(lengths.max()), numpy.uint8)
    padded[: len(data)] = data
    rows = everyone.process_allgather(padded).reshape(len(lengths), -1)
    # The other ranks of this very program wrote it: no file, no stranger.
    return [
        pickle.loads(row[: int(length)].tobytes())  # noqa: S301 - Of another rank.
        for row, length in zip(rows, lengths, strict=True)
    ]
