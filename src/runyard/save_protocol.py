"""How a program and whoever runs it agree about saving: an exit code, and files it leaves.

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
