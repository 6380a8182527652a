"""What each letter means: one thing, in every command that has it.

The lower-case letters of resources are those of the submit scripts that people come from
(`config/request.py` has them as well, and a test compares the two).
"""

from __future__ import annotations

from collections.abc import Container

# A letter, what it means, and the options that it stands for; a command has one of these.
LETTERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "-a": ("account: who pays", ("--account",)),
    "-c": ("CPUs of each task", ("--cpus",)),
    "-C": ("file with the command", ("--configs",)),
    "-d": ("data that is brought to the nodes", ("--data",)),
    "-e": ("name of what is run", ("--exp-name", "--name")),
    "-E": ("entity: user or team", ("--entity",)),
    "-f": ("go on showing what is new", ("--follow", "--watch")),
    "-g": ("GPUs on each node", ("--gpus",)),
    "-G": ("type of GPU", ("--gpu-type",)),
    "-h": ("help", ("--help",)),
    "-j": ("programs at a time", ("--slots",)),
    "-l": ("at most so many lines", ("--limit", "--lines")),
    "-m": ("memory for each GPU", ("--mem-per-gpu",)),
    "-n": ("nodes", ("--nodes",)),
    "-o": ("file to write to", ("--output",)),
    "-p": ("partition", ("--partition",)),
    "-P": ("project", ("--project",)),
    "-q": ("print less", ("--quiet",)),
    "-R": ("run that counts as one of the sweep's", ("--prior-run",)),
    "-s": ("container", ("--container",)),
    "-t": ("time that it may take", ("--time",)),
    "-u": ("output as it comes, which is how it always comes", ("--ungroup",)),
    "-w": ("sweep that is there already", ("--sweep-id",)),
    "-W": ("how processes of one trial find each other", ("--distributed",)),
    "-y": ("ask nothing", ("--yes",)),
}
# What a letter stood for before it had one meaning, here or in the submit scripts of old.
_FORMER: dict[str, tuple[str, ...]] = {
    "-a": ("--all",),
    "-e": ("--entity",),
    "-f": ("--format",),
    "-g": ("--group",),
    "-j": ("--job-type",),
    "-m": ("--metric",),
    "-n": ("--name", "--limit", "--lines", "--agents"),
    "-p": ("--project",),
    "-s": ("--state",),
    "-t": ("--tag",),
    "-w": ("--what", "--watch"),
}
LETTER_OF = {option: letter for letter, (_, options) in LETTERS.items() for option in options}


def advice_on(letter: str, options: Container[str]) -> str | None:
    """What to write for a letter that a command with these options did not take, where it has or
    had a meaning."""
    if letter not in LETTERS:
        return None
    now = [
        f"for {option} write {LETTER_OF[option]}"
        if option in LETTER_OF
        else f"{option} has no letter"
        for option in _FORMER.get(letter, ())
        if option in options
    ]
    return "; ".join((f"{letter} is {LETTERS[letter][1][0]} in every command", *now))
