"""The states of sweeps and trials that the server, its clients and the nodes must agree about."""

from __future__ import annotations

# Sweeps that may hand out trials, now or when they are continued.
OPEN_SWEEPS = ("running", "paused")
# Trials that are not run again.
ENDED_TRIALS = ("finished", "failed", "stopped", "canceled")
