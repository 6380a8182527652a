"""The curves into MLflow's store:  python mlflow_writer.py CURVES FOLDER

Prints the experiment's key, which its page has in its address.
"""

import json
import sys
import time
from pathlib import Path

from mlflow import MlflowClient  # type: ignore[import-not-found]
from mlflow.entities import Metric  # type: ignore[import-not-found]

curves, folder = json.loads(Path(sys.argv[1]).read_text()), sys.argv[2]
client = MlflowClient(f"sqlite:///{folder}/mlflow.db")
experiment = client.create_experiment("peers")
for number, values in enumerate(curves):
    run = client.create_run(experiment, run_name=f"run-{number}")
    now = int(time.time() * 1000)
    client.log_batch(
        run.info.run_id,
        metrics=[Metric("loss", value, now + step, step) for step, value in enumerate(values)],
    )
    client.set_terminated(run.info.run_id)
print(json.dumps({"experiment": experiment}))
