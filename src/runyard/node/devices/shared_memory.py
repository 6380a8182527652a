"""The memory of a GPU that programs share: what they were seen to take, and how many fit."""

from __future__ import annotations

import math

from runyard.node.devices.slot_shares import USABLE_MEMORY, rounded_peak

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Protocol

    class Program(Protocol):
        """One that runs: its peak so far, when it began to work, whether it ran out before."""

        vram: int
        warm_at: float | None
        is_large: bool


# Peaks that are remembered.
_LAST = 64
# Of so many programs' peaks, this share is as large as is usual; a larger one is an exception.
_USUAL, _ENOUGH_PEAKS = 0.8, 5
# Who takes so many times as much memory as is usual is another kind of program.
_OTHER_KIND = 2.5
# So many good ends for each program, before one more is let in again after one ran out.
_PATIENCE = 4


class SharedMemory:
    """Of one GPU, on which at most `most` programs run."""

    def __init__(self, most: int) -> None:
        self.total = 0
        # What others than our programs use.
        self.others = 0
        # Of programs that have ended.
        self.peaks: list[int] = []
        # How many there is room for since one ran out of memory.
        self.room = self._most = most
        self._patience, self._good_ends = _PATIENCE, 0
        # The one that ran out of memory begins next.
        self._is_large_next = False

    def begin(self, program: Program) -> None:
        program.is_large, self._is_large_next = self._is_large_next, False

    def forget(self, program: Program) -> None:
        """It has ended; what it took is remembered."""
        if program.vram:
            self._remember(program.vram)

    def count_good_end(self) -> None:
        self._good_ends += 1
        if self._good_ends >= self._patience * self.room and self.room < self._most:
            self.room, self._good_ends = self.room + 1, 0

    def ran_out(self, vram: int, beside: Collection[Program], together: int) -> None:
        """One of so many ran out of memory, after it had so much."""
        held = [program.vram for program in beside]
        if self.total and any(held):
            # It needs more than those beside it left.
            self._remember(max(self._usable - sum(held), vram))
            self._is_large_next = True
        else:
            # Nobody knows what a program takes: from now on there is room for fewer.
            self.room = max(1, min(self.room, together - 1))
            self._patience, self._good_ends = 2 * self._patience, 0

    def peak(self, running: Collection[Program]) -> int:
        return max(self._all_peaks(running), default=0)

    def is_mixed(self, running: Collection[Program]) -> bool:
        """Whether one of another kind is there. Beside it, others are slower than beside as many of
        their own kind."""
        peaks = sorted(self._all_peaks(running))
        if len(peaks) < _ENOUGH_PEAKS - 2:
            return False
        usual = peaks[len(peaks) // 2]
        return any(program.vram > _OTHER_KIND * usual for program in running)

    def fitting(self, running: Collection[Program]) -> int:
        """So many fit: those that are there, and more of which each takes what is usual. One that
        is still starting will, too."""
        usual, peak = self._usual_peak(running), self.peak(running)
        if not peak or not self.total:
            return self._most
        held = 0
        for program in running:
            expected = peak if program.is_large else usual
            held += program.vram if program.warm_at is not None else max(expected, program.vram)
        free = self._usable - held
        if self._is_large_next:
            return max(1, len(running) + min(1, free // rounded_peak(peak)))
        return max(1, len(running) + free // rounded_peak(usual))

    def _remember(self, peak: int) -> None:
        self.peaks = [*self.peaks, peak][-_LAST:]

    @property
    def _usable(self) -> int:
        return int(self.total * USABLE_MEMORY) - self.others

    def _all_peaks(self, running: Collection[Program]) -> list[int]:
        return [*self.peaks, *(program.vram for program in running if program.vram)]

    def _usual_peak(self, running: Collection[Program]) -> int:
        """What most programs stay below. The rare larger one may run out of memory beside others;
        it then begins again when there is room for the largest."""
        peaks = sorted(self._all_peaks(running))
        if len(peaks) < _ENOUGH_PEAKS:
            return max(peaks, default=0)
        return peaks[math.ceil(_USUAL * len(peaks)) - 1]
