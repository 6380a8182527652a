"""Lines that the library prints: by rank 0 alone, and recognisable."""

from __future__ import annotations

import sys

from runyard.train import exchange


def say(text: str) -> None:
    """One line on standard output, from rank 0."""
    if exchange.rank() == 0:
        print(f"runyard: {text}", flush=True)


def warn(text: str) -> None:
    """One line on standard error, from whichever rank has it to tell."""
    print(f"runyard: {text}", file=sys.stderr, flush=True)
