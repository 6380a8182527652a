"""The CNN regressor as it is, and what each rank reads, holds, logs, draws and writes, noted.

watched_regressor.py EXAMPLE NOTES [OPTIONS OF train.py]
"""

import json
import os
import sys
from pathlib import Path

import torch

from runyard import train as library
from runyard.train import folders

EXAMPLE, NOTES, *WORDS = sys.argv[1:]
SAMPLES, WRITE = 16, folders.write
sys.path.insert(0, EXAMPLE)
import train  # noqa: E402

notes = {"reads": [], "own": [], "logged": [], "drawn": [], "written": []}


class Watched(train.Trainer):
    def __init__(self, params, ranks, folder) -> None:
        super().__init__(params, ranks, folder)
        notes["model"] = type(self.model).__name__
        notes["batches"] = [self.train_loader.batch_size, self.valid_loader.batch_size]
        notes["backend"] = torch.distributed.get_backend()
        self.model.register_forward_pre_hook(self.read)

    def read(self, model, inputs) -> None:
        """Each sample holds its own number."""
        notes["reads"].append([model.training, inputs[0][:, 0, 0, 0].tolist()])

    def train_epoch(self, epoch):
        notes["own"].append(super().train_epoch(epoch))
        return notes["own"][-1]

    def validate(self):
        own = super().validate()
        notes["own"][-1] = notes["own"][-1] | own
        return own

    def log(self, step, logged) -> None:
        notes["logged"].append(logged)
        if not (self.ranks.main and self.params.log_to_wandb):
            super().log(step, logged)
            return
        import matplotlib.pyplot as plt

        close = plt.close

        def close_noted(figure) -> None:
            titled = [axis for axis in figure.axes if axis.get_title()]
            shown = {axis.get_title(): axis.images[0].get_array().tolist() for axis in titled}
            notes["drawn"].append(shown)
            close(figure)

        plt.close = close_noted
        super().log(step, logged)
        plt.close = close
        notes["left_open"] = plt.get_fignums()


def write_noted(folder, step, *more):
    notes["written"].append(step)
    return WRITE(folder, step, *more)


folders.write = write_noted
train.Trainer = Watched
data = Path(f"{NOTES}.pt")
if os.environ["RANK"] == "0":
    numbers = torch.arange(SAMPLES).float().reshape(-1, 1, 1, 1).expand(-1, 1, 4, 4)
    torch.save({"input": numbers.clone(), "target": numbers / SAMPLES}, data)
library.command(train.main, argv=[*WORDS, f"--train_path={data}", f"--val_path={data}"])
notes["wandb"] = "wandb" in sys.modules
Path(f"{NOTES}-{os.environ['RANK']}.json").write_text(json.dumps(notes))
