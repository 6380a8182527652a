"""A model that one run logs and another uses."""

from pathlib import Path

import wandb

Path("model.pt").write_bytes(b"weights" * 100)
with wandb.init(id="trainer") as run:
    run.log_model("model.pt", name="net", aliases=["production"])
with wandb.init(id="tester") as run:
    path = Path(run.use_model("net:production"))
    assert path.read_bytes() == b"weights" * 100, path
