"""What a scheduler gives to a job's script: names of its variables, and fragments of shell. Pure.

Fragments are valid in bash and in zsh.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class ScriptWords:
    title: str
    """What people call the scheduler."""
    plain: re.Pattern[str]
    """What a line of the header can hold."""
    outside: str
    """Ends the script, with advice, where it runs in no job."""
    job: str
    """The variable that has the job's number; the next ones are names of variables too."""
    own: str
    """The job's number, or the task's: tasks of an array share no folder and no file."""
    array_job: str
    array_task: str
    """Empty or unset where the job is no array."""
    nodes: str
    node: str
    partition: str
    cluster: str
    disk: str
    """The job's folder on its node's own disk."""
    handed_on: tuple[str, ...]
    """How the variables begin that programs in containers get."""
    opening: tuple[str, ...] = ()
    """Lines before any of the variables is used."""
    for_steps: tuple[str, ...] = ()
    """Lines for commands that start processes inside the job."""
    whole_job: tuple[str, ...] = ()
    """Lines after which a shell on the job's first node stands for all of its nodes."""
    restarts: str = ""
    """How often the job was started again, and what sends it back to the queue; empty where that
    cannot be counted."""
    requeue: str = ""
    each_node: str = ""
    """Runs `sh -c "$on_node" agent "${steward[@]}" "${agent[@]}"` on each node of the job and sets
    `code`; {log} says where the output goes. Empty where jobs have one node."""
    pushed_out: str = ""
    """Prints a time, with digits, if the job is to make room for another one and goes back to the
    queue unless it ends by itself before."""
    node_log: str = ""
    """What each_node's {log} becomes; {path} begins the file's name, %j in it is the job."""

    def is_plain(self, text: object) -> bool:
        """Whether it can stand in a line of the header."""
        return self.plain.fullmatch(str(text)) is not None
