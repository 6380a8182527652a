"""Work on this machine for a sweep at a server that is not ours."""

from __future__ import annotations

import os
import subprocess
import sys

from runyard.actions.elsewhere import SweepElsewhere, agent_words
from runyard.actions.slots import Slots
from runyard.cli.output import say
from runyard.cli.starting.asking import Asked
from runyard.home import Home


def work_elsewhere(
    home: Home,
    found: SweepElsewhere,
    *,
    slots: Slots,
    count: int | None,
    seconds: float | None,
    grace: float | None,
) -> int:
    """Run its trials here until there are none left, or somebody asks to end."""
    say(f"working on {found.path} at {found.url}, {slots}; Ctrl-C hands back what runs")
    leash, held = os.pipe()
    with Asked() as asked:
        process = subprocess.Popen(
            agent_words(found, slots=slots, count=count, seconds=seconds, grace=grace, leash=leash),
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            pass_fds=[leash],
            start_new_session=True,  # Ctrl-C is ours to pass on.
            env={**os.environ, "RUNYARD_HOME": str(home.path)},
        )
        os.close(leash)
        while process.poll() is None:
            asked.pass_on(process, found.path)
            asked.wait(process, 0.5)
        os.close(held)
    return 128 + asked.number if asked.number is not None else process.returncode
