"""The curves into Trackio's database:  python trackio_writer.py CURVES FOLDER

By the call that its own server makes when runs send what they logged.
"""

import json
import sys
from pathlib import Path

from trackio.sqlite_storage import SQLiteStorage  # type: ignore[import-not-found]

curves = json.loads(Path(sys.argv[1]).read_text())
for number, values in enumerate(curves):
    SQLiteStorage.bulk_log(
        project="peers",
        run=f"run-{number}",
        metrics_list=[{"loss": value} for value in values],
        steps=list(range(len(values))),
        config={},
    )
