"""How a program and whoever runs it agree about what it leaves: an exit code, and files.

`train` writes them in the program, `node` reads them beside it, and the server counts the code.
"""

from __future__ import annotations

# EX_TEMPFAIL of sysexits.h: the program has saved, and asks to be continued later.
GO_ON = 75
# Left in the checkpoint folder for launchers that turn every exit code into 1, as torchrun does.
GO_ON_NOTE = "go-on"
# Left there as soon as a program looks for its checkpoint, before there is one.
USED_NOTE = ".used"
# The file of a checkpoint that says what belongs to it.
MANIFEST = "manifest.json"
# Names the folder where programs keep how fast their earlier runs were (`train/courses.py`).
COURSES = "RUNYARD_COURSES"


def courses_folder(home: str, project: str) -> str:
    """Of a project's programs, in the state folder."""
    return f"{home}/courses/{path_part(project)}"


def path_part(text: str) -> str:
    """A name as a part of a path."""
    return "".join(char if char.isalnum() or char in "-_" else "-" for char in text)[:100] or "-"
