"""How many programs run at a time on a machine, and on which GPUs."""

from __future__ import annotations

from dataclasses import dataclass

from runyard.shapes.sweeps import Sweep


@dataclass(frozen=True)
class Slots:
    """As they were asked for; None where nothing was said."""

    count: int | None = None
    per_gpu: int | str | None = None
    gpus: str | None = None
    mps: str | None = None

    def words(self) -> list[str]:
        """For the agent."""
        options = (
            ("--slots", self.count),
            ("--per-gpu", self.per_gpu),
            ("--gpus", self.gpus),
            ("--mps", self.mps),
        )
        return [
            word for option, value in options if value is not None for word in (option, str(value))
        ]

    def of_sweep(self, sweep: Sweep) -> Slots:
        """Where nothing is said of GPUs here, what the sweep's file says counts."""
        per_gpu = sweep["config"].get("runyard", {}).get("slots_per_gpu")
        if per_gpu is None or self.per_gpu is not None or self.count is not None:
            return self
        return Slots(self.count, per_gpu, self.gpus, self.mps)

    def __str__(self) -> str:
        if self.per_gpu is not None:
            most = "" if self.count is None else f", at most {self.count}"
            return f"{self.per_gpu} at a time on each GPU{most}"
        if self.gpus is not None and self.count is None:
            return "one at a time on each GPU"
        return f"{self.count or 1} at a time"
