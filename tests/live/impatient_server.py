"""The server as commands start it, but it takes a run for dead after seconds instead of minutes.

python -m tests.live.impatient_server --home STATE_FOLDER
"""

from __future__ import annotations

import sys

from runyard.server.__main__ import main
from runyard.server.runs import states
from runyard.server.tracking import silence

states.SILENT_SECONDS = 5.0
silence._LOOK_EVERY = 0.5

if __name__ == "__main__":
    sys.exit(main())
