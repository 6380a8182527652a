"""The server as commands start it, with a bug: no end of an attempt can be told while the file
`fails` is beside the state folder.

python -m tests.live.failing_server --home STATE_FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from runyard.server.__main__ import main
from runyard.server.sweeps.ledger import agents

_end_attempt = agents.end_attempt
_bug = Path(sys.argv[-1]).parent / "fails"


def end_attempt(*words: Any, **how: Any) -> Any:
    if _bug.exists():
        raise KeyError("a bug")
    return _end_attempt(*words, **how)


agents.end_attempt = end_attempt

if __name__ == "__main__":
    sys.exit(main())
