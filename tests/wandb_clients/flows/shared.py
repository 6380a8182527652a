"""One of two writers of a run: `shared.py LABEL`."""

import sys
import time
from pathlib import Path

import wandb

label = sys.argv[1]
primary = label == "rank0"
settings = wandb.Settings(
    mode="shared", x_primary=primary, x_label=label, x_update_finish_state=primary
)
run = wandb.init(id="together", settings=settings, config={label: True})
print(f"console of {label}")
for step in range(10):
    run.log({f"{label}/value": step})
run.summary[f"{label}/done"] = True
mark = Path("second-is-done")
while primary and not mark.exists():
    time.sleep(0.1)  # The one that ends the run leaves last.
run.finish()
if not primary:
    mark.touch()
