"""The curves into an Aim repository:  python aim_writer.py CURVES FOLDER"""

import json
import sys
from pathlib import Path

from aim import Repo, Run  # type: ignore[import-not-found]

curves, folder = json.loads(Path(sys.argv[1]).read_text()), sys.argv[2]
repo = Repo.from_path(folder, init=True)
for number, values in enumerate(curves):
    run = Run(
        repo=repo,
        experiment="peers",
        system_tracking_interval=None,
        log_system_params=False,
        capture_terminal_logs=False,
    )
    run.name = f"run-{number}"
    for step, value in enumerate(values):
        run.track(value, name="loss", step=step)
    run.close()
