"""Lightning with its own logger and its own checkpoints."""

import os
import sys
import time
from pathlib import Path

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import WandbLogger


class Model(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch: tuple[torch.Tensor, ...], number: int) -> torch.Tensor:
        (inputs,) = batch
        loss = (self.layer(inputs) ** 2).mean()
        self.log("loss", loss)
        time.sleep(0.1)
        if os.path.exists(os.environ["MAY_END"]):
            self.trainer.should_stop = True
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.01)


folder = Path(sys.argv[1])
data = torch.utils.data.TensorDataset(torch.randn(1000, 4))
saver = ModelCheckpoint(
    dirpath=folder, filename="{step}", every_n_train_steps=1, save_top_k=1, save_last=True
)
trainer = lightning.Trainer(
    max_epochs=1000,
    accelerator="cpu",
    devices=1,
    logger=WandbLogger(),
    callbacks=[saver],
    log_every_n_steps=1,
    enable_progress_bar=False,
    enable_model_summary=False,
)
last = folder / "last.ckpt"
trainer.fit(
    Model(),
    torch.utils.data.DataLoader(data, batch_size=1),
    ckpt_path=str(last) if last.exists() else None,
)
