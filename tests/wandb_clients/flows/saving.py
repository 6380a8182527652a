"""Files that are saved at once, on change, and at the end."""

import time
from pathlib import Path

import wandb

run = wandb.init()
here = Path(run.dir)
(here / "checkpoints").mkdir()
(here / "checkpoints" / "one.bin").write_bytes(bytes(range(256)) * 1000)
(here / "empty.txt").touch()
(here / "live.txt").write_text("first")
(here / "end.txt").write_text("not yet")
run.save(str(here / "checkpoints" / "*"), base_path=str(here), policy="now")
run.save(str(here / "empty.txt"), base_path=str(here), policy="now")
run.save(str(here / "live.txt"), base_path=str(here), policy="live")
run.save(str(here / "end.txt"), base_path=str(here), policy="end")
outside = Path("results.csv").resolve()
outside.write_text("a,b\n1,2\n")
run.save(str(outside), base_path=str(outside.parent))
time.sleep(1)
(here / "live.txt").write_text("second")
(here / "end.txt").write_text("the end")
run.finish()
