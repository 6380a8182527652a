"""W&B's open engine behind JSON lines: run by an interpreter that has it, never part of runyard.

`{"open": {"config": ..., "seed": n}}`, `{"result": {"id": n, "value": x}}`,
`{"suggest": n}` -> `{"settings": ...}` (the new run counts as running from then on).
"""

from __future__ import annotations

import json
import random
import sys
import warnings


def main() -> None:
    warnings.filterwarnings("ignore")
    import numpy
    from sweeps import next_run
    from sweeps.run import RunState, SweepRun

    runs: dict[int, SweepRun] = {}
    config = {}
    for line in sys.stdin:
        said = json.loads(line)
        if "open" in said:
            config = said["open"]["config"]
            runs.clear()
            numpy.random.seed(said["open"]["seed"])
            random.seed(said["open"]["seed"])
        elif "result" in said:
            run = runs[said["result"]["id"]]
            run.history = [{"value": said["result"]["value"]}]
            run.summary_metrics = {"value": said["result"]["value"]}
            run.state = RunState.finished
        else:
            run = next_run(config, list(runs.values()))
            run.state = RunState.running
            runs[said["suggest"]] = run
            settings = {name: cell["value"] for name, cell in run.config.items()}
            print(
                json.dumps({"settings": settings}, default=lambda number: number.item()), flush=True
            )


if __name__ == "__main__":
    main()
