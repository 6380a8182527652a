"""How a program and whoever runs it agree about what it leaves: an exit code, and files.

`train` writes them in the program, `node` reads them beside it, and the server counts the code.
"""

from __future__ import annotations

# EX_TEMPFAIL of sysexits.h: the program has saved, and asks to be requeued.
GO_ON = 75
# Written into the checkpoint folder, because some launchers (torchrun) turn every exit code into 1.
GO_ON_NOTE = "go-on"
# Written as soon as a program looks for its checkpoint, before a checkpoint exists.
USED_NOTE = ".used"
# The manifest of a checkpoint.
MANIFEST = "manifest.json"
# Names the folder in which programs store the pace of their earlier runs (`train/courses.py`).
COURSES = "RUNYARD_COURSES"


def courses_folder(home: str, project: str) -> str:
    """The folder of a project's programs, in the state folder."""
    return f"{home}/courses/{path_part(project)}"


def path_part(text: str) -> str:
    """A name that is safe as a part of a path."""
    return "".join(char if char.isalnum() or char in "-_" else "-" for char in text)[:100] or "-"
