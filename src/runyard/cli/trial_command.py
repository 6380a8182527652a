"""How a trial of a sweep is started, as one line for a shell."""

from __future__ import annotations

import os
import shlex

from runyard.client.sweeps import Sweep, Trial
from runyard.errors import UsageError
from runyard.node.attempt.command_line import expand
from runyard.search.tasks import COMMAND_LINE


def trial_words(sweep: Sweep, trial: Trial) -> str:
    if COMMAND_LINE in trial["values"]:
        return str(trial["values"][COMMAND_LINE])
    config = sweep["config"]

    def no_file(_text: str) -> str:
        raise UsageError(
            f"trial {trial['name']} is given its values in a file of its own",
            mend=f"`runyard retry {sweep['id']} --trial {trial['name']}` runs it if it failed",
        )

    words = expand(
        config.get("command"), config.get("program"), trial["values"], os.environ, no_file
    )
    return shlex.join(words)
