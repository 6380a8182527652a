import lightning
import torch
from lightning.pytorch.loggers import WandbLogger


class Model(lightning.LightningModule):
    def __init__(self, lr=0.1):
        super().__init__()
        self.save_hyperparameters()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, _):
        loss = (self.layer(batch[0]) ** 2).mean()
        self.log("train/loss", loss)
        return loss

    def validation_step(self, batch, _):
        self.log("val/loss", (self.layer(batch[0]) ** 2).mean())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.hparams.lr)


data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(32, 4)), 8)
trainer = lightning.Trainer(
    max_epochs=3, accelerator="cpu", log_every_n_steps=1, enable_progress_bar=False,
    logger=WandbLogger(log_model="all"),
)  # fmt: skip
trainer.fit(Model(), data, data)
