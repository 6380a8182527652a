"""The curves as TensorBoard's event files:  python tensorboard_writer.py CURVES FOLDER"""

import json
import sys
import time
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import Event  # type: ignore[import-not-found]
from tensorboard.compat.proto.summary_pb2 import Summary  # type: ignore[import-not-found]
from tensorboard.summary.writer.event_file_writer import (  # type: ignore[import-not-found]
    EventFileWriter,
)

curves, folder = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
for number, values in enumerate(curves):
    writer = EventFileWriter(str(folder / f"run-{number}"))
    now = time.time()
    for step, value in enumerate(values):
        summary = Summary(value=[Summary.Value(tag="loss", simple_value=value)])
        writer.add_event(Event(wall_time=now + step, step=step, summary=summary))
    writer.close()
