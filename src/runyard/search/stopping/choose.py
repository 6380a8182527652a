"""The stopper of a rule."""

from __future__ import annotations

from runyard.search.early_terminate import Asha, EarlyTerminate
from runyard.search.stopping.asha import AshaStopper
from runyard.search.stopping.decision import Stopper
from runyard.search.stopping.hyperband import HyperbandStopper


def make_stopper(rule: EarlyTerminate, maximize: bool) -> Stopper:
    return (
        AshaStopper(rule, maximize) if isinstance(rule, Asha) else HyperbandStopper(rule, maximize)
    )
