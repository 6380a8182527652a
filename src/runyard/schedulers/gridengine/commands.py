"""Grid Engine's commands: `qsub`, `qstat`, `qdel`, `qconf`, `qhost`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from xml.etree import ElementTree

from runyard.schedulers import commands
from runyard.schedulers.errors import SchedulerError
from runyard.schedulers.protocol import PATIENCE


class Answer(commands.Answer):
    title = "Grid Engine"
    where = "submit host"
    # The master is overloaded or restarting.
    busy = re.compile(
        r"commlib error|unable to (?:contact|send message to) qmaster|got no response"
        r"|unable to connect|connection refused|timed? ?out|qmaster is not (?:running|reachable)"
        r"|failed receiving gdi request|can't resolve .*qmaster",
        re.IGNORECASE,
    )
    silent = "Grid Engine's master does not answer: wait a little, then run the same again"


ask = partial(commands.ask, Answer)


def ask_xml(
    words: Sequence[str],
    environ: Mapping[str, str],
    what: str,
    *,
    patience: float = PATIENCE,
    seconds: float = PATIENCE,
) -> ElementTree.Element:
    """The XML that a command prints; SchedulerError, which begins with `what`, if it fails."""
    answer = ask(words, environ=environ, patience=patience, seconds=seconds)
    if not answer.is_good:
        raise answer.refused(what)
    try:
        # The master's own words, about the user's own jobs.
        return ElementTree.fromstring(answer.output)  # noqa: S314 - Of qstat.
    except ElementTree.ParseError as error:
        raise SchedulerError(what, said=f"{words[0]} printed no XML: {error}") from error
