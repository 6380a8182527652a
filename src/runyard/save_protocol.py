"""How a program and whoever runs it agree about what it leaves: an exit code, and files.

`train` writes them in the program, `node` reads them beside it, and the server counts the code.
"""

from __future__ import annotations

import contextlib
import json
import os

# EX_TEMPFAIL of sysexits.h: the program has saved, and asks to be requeued.
GO_ON = 75
# Written into the checkpoint folder, because some launchers (torchrun) turn every exit code into 1.
GO_ON_NOTE = "go-on"
# Written as soon as a program looks for its checkpoint, before a checkpoint exists.
USED_NOTE = ".used"
# Names the attempt that has the folder: an earlier one that is heard again must not save there.
# Beside the folder: many programs look whether theirs is empty.
_ATTEMPT_NOTE = ".{}-attempt"
# The manifest of a checkpoint.
MANIFEST = "manifest.json"
# Names the folder in which programs store the pace of their earlier runs (`train/courses.py`).
COURSES = "RUNYARD_COURSES"


def take_folder(folder: str, run: str | None, attempt: int) -> None:
    """Say which attempt saves in a folder from now on. A disk that is full takes no note."""
    note = attempt_note(folder)
    aside = f"{note}-{os.urandom(4).hex()}"
    with contextlib.suppress(OSError):
        try:
            with open(aside, "w", encoding="utf-8") as file:
                json.dump({"run": run, "attempt": attempt}, file)
            os.replace(aside, note)
        except OSError:
            os.unlink(aside)


def attempt_in(folder: str, run: str | None) -> int | None:
    """The attempt of a run that has a folder; None if none of this run has it."""
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        with open(attempt_note(folder), encoding="utf-8") as file:
            note = json.load(file)
        if note["run"] == run:
            return int(note["attempt"])
    return None


def attempt_note(folder: str) -> str:
    """Where it is said which attempt has a folder."""
    place, name = os.path.split(os.path.abspath(folder))
    return os.path.join(place, _ATTEMPT_NOTE.format(name))


def courses_folder(home: str, project: str) -> str:
    """The folder of a project's programs, in the state folder."""
    return f"{home}/courses/{path_part(project)}"


def path_part(text: str) -> str:
    """A name that is safe as a part of a path."""
    return "".join(char if char.isalnum() or char in "-_" else "-" for char in text)[:100] or "-"
