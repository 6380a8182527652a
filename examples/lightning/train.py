"""A Lightning module that is cut off and goes on: one callback is all that it takes.

python train.py --lr 0.01 --hidden 32 --epochs 5
"""

import argparse
import os
from pathlib import Path

import torch
from lightning import Callback, LightningModule, Trainer, seed_everything
from lightning.pytorch.loggers import WandbLogger
from torch.utils.data import DataLoader, TensorDataset

from runyard import train


class Regressor(LightningModule):
    def __init__(self, hidden: int, lr: float) -> None:  # noqa: ARG002  (kept as a hyperparameter)
        super().__init__()
        self.save_hyperparameters()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(8, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, 1)
        )

    def training_step(self, batch, _number):
        loss = torch.nn.functional.mse_loss(self.net(batch[0]), batch[1])
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, _number):
        self.log("val_loss", torch.nn.functional.mse_loss(self.net(batch[0]), batch[1]))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


class GoOn(Callback):
    """Saves after every epoch, whole or not at all; leaves when it is told to, to go on later."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "last.ckpt"

    @property
    def resume_from(self) -> str | None:
        return str(self.path) if self.path.exists() else None

    def on_train_epoch_end(self, trainer, _module):
        trainer.save_checkpoint(f"{self.path}.new")
        if trainer.is_global_zero:
            Path(f"{self.path}.new").replace(self.path)
        if trainer.current_epoch + 1 < trainer.max_epochs and train.should_stop():
            train.go_on()


def data(count: int, seed: int) -> TensorDataset:
    inputs = torch.randn(count, 8, generator=torch.Generator().manual_seed(seed))
    return TensorDataset(inputs, inputs.sin().sum(1, keepdim=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--nodes", type=int, default=int(os.environ.get("SLURM_NNODES", "1")))
    args = parser.parse_args()

    seed_everything(0, verbose=False)
    folder = Path(os.environ.get("RUNYARD_CHECKPOINT_DIR", "checkpoints"))
    folder.mkdir(parents=True, exist_ok=True)
    going_on = GoOn(folder)
    trainer = Trainer(
        max_epochs=args.epochs,
        num_nodes=args.nodes,
        logger=WandbLogger(project="lightning", config=vars(args)),
        callbacks=[going_on],
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        log_every_n_steps=1,
    )
    module = Regressor(args.hidden, args.lr)
    trainer.fit(
        module,
        # Not shuffled: Lightning does not bring the order of a shuffled loader back.
        DataLoader(data(512, 1), batch_size=64),
        DataLoader(data(128, 2), batch_size=128),
        ckpt_path=going_on.resume_from,
    )


if __name__ == "__main__":
    main()
