"""Questions on a terminal, asked before anything is made."""

from __future__ import annotations

import sys

from runyard.cli.output import say


def ask_number(question: str, usual: int) -> int:
    """A whole number, asked for until it is one; an empty line takes the usual."""
    while True:
        print(f"{question} [{usual}] ", end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        text = line.strip()
        if not text:
            return usual
        if text.isdecimal() and int(text) > 0:
            return int(text)
        say(f"{text!r} is no whole number, 1 or more")


def ask_sure(question: str, *, usual: bool = False) -> bool:
    """An empty line means what is usual, and the end of the input no."""
    print(f"{question} [{'Y/n' if usual else 'y/N'}] ", end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    return line.strip().lower() in ("y", "yes") or (usual and bool(line) and not line.strip())
