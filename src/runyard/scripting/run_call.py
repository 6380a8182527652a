"""Make one call in a job: `python -m runyard.scripting.run_call FOLDER NUMBER`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from runyard.scripting.calls import CallFolder, Outcome, failed
from runyard.train.placement import find_placement

_CANCELED = 1


def main(folder: Path, number: int) -> int:
    calls = CallFolder(folder)
    if calls.is_canceled(number):
        print("it was canceled before it began")
        return _CANCELED
    is_first = find_placement(os.environ).rank == 0
    if is_first:
        calls.forget(number)
    calls.find_modules()
    try:
        outcome = Outcome(calls.read_call(number).make())
    except Exception as error:  # SystemExit passes: its code may say 'go on'.
        outcome = failed(error)
        print(outcome.traceback, end="", file=sys.stderr)
    if is_first:  # Of several ranks the first speaks for all.
        calls.keep(number, outcome)
    return 0 if outcome.error is None else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
