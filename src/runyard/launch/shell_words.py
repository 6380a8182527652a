"""Words for bash, zsh and sh alike: quoted, and told when they fail."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

# A shell that is no login shell does not know `module`; these make it known.
_MODULE_STARTS = (
    "/etc/profile.d/lmod.sh",
    "/etc/profile.d/modules.sh",
    "/etc/profile.d/z00_lmod.sh",
    "/usr/share/lmod/lmod/init/profile",
    "/usr/share/modules/init/profile.sh",
)

# Whether the folder above the job's own on the node's disk is not the user's, or a link.
FOLDER_IS_TAKEN = (
    '[ -n "$RUNYARD_LOCAL" ] && { [ ! -O "${RUNYARD_LOCAL%/*}" ] || [ -L "${RUNYARD_LOCAL%/*}" ]; }'
)


def quote(text: object) -> str:
    """One word."""
    word = str(text)
    # zsh takes =word for the path of a command.
    return f"'{word}'" if word.startswith("=") and shlex.quote(word) == word else shlex.quote(word)


def expandable(path: str) -> str:
    """A path inside double quotes: its `${VARIABLES}` are the node's, the rest is text."""
    return re.sub(r'(["\\`]|\$(?!\{\w+(:-\w*)?\}))', r"\\\1", path)


def failing(line: str, why: str) -> str:
    """A line after whose failure the script ends, and says why."""
    return f"{line} || {{ echo {quote(f'runyard: {why}')} >&2; exit 1; }}"


def module_lines(modules: Iterable[str]) -> tuple[str, ...]:
    """Lines that load modules, also in a shell that does not know the word yet."""
    words = list(modules)
    if not words:
        return ()
    starts = " ".join(_MODULE_STARTS)
    return (
        "command -v module >/dev/null 2>&1 || "
        f'for start in {starts}; do if [ -r "$start" ]; then . "$start"; break; fi; done',
        failing(f"module load {' '.join(map(quote, words))}", f"cannot load {', '.join(words)}"),
    )
