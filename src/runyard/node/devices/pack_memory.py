"""What packing learnt of a program, kept for its next sweep: by program, GPU model and setting.

A file of its own each in the state folder, replaced as a whole: agents on several nodes write
there, and the last one's figures are as good as any.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_SCRIPTS = (".py", ".jl", ".r", ".sh", ".m", ".lua", ".rb", ".pl")
_PYTHON = re.compile(r"(?:.*/)?python[\d.]*$")
_VERSION = 2


class PackMemory:
    """Of one program on one model of GPU; `setting`: with MPS or without."""

    def __init__(self, home: str, project: str, program: str, model: str, setting: str) -> None:
        from runyard.save_protocol import path_part

        name = "+".join(path_part(part) for part in (program, model or "cpu", setting))
        self._path = f"{home}/packing/{path_part(project)}/{name}.json"

    def read(self) -> dict[str, Any] | None:
        """None where there is nothing, or nothing that we understand."""
        with contextlib.suppress(OSError, ValueError), open(self._path, encoding="utf-8") as file:
            content = json.load(file)
            if isinstance(content, dict) and content.get("version") == _VERSION:
                return content
        return None

    def write(self, learnt: dict[str, Any]) -> None:
        """A full disk, or a home that cannot be written, is no trouble: it is learnt again."""
        aside = f"{self._path}.{os.getpid()}"
        with contextlib.suppress(OSError):
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            with open(aside, "w", encoding="utf-8") as file:
                json.dump({"version": _VERSION, **learnt}, file)
            os.replace(aside, self._path)


def program_of(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """What a command runs, as it is called in the project, and the words behind it.

    `./train.py` and `/home/me/p/train.py` are `train.py`; `python -m pkg.train` is `pkg.train`.
    """
    if len(words) == 3 and words[1] == "-c" and words[0].endswith("sh"):
        words = _split(words[2])
    for place, word in enumerate(words):
        if word.lower().endswith(_SCRIPTS) and not word.startswith("-"):
            return _short(word), words[place + 1 :]
        is_module = word == "-m" and place > 0 and _PYTHON.match(words[place - 1])
        if is_module and place + 1 < len(words):
            return words[place + 1], words[place + 2 :]
    first = next((word for word in words if "=" not in word), "program")
    return os.path.basename(first) or "program", words[1:]


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return line.split()


def _short(path: str) -> str:
    return os.path.basename(path) if os.path.isabs(path) else os.path.normpath(path)
