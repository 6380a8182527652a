"""transformers' Trainer, which reports to wandb by itself and goes on by its own checkpoints."""

import os
import sys
import time
from pathlib import Path

import torch
from transformers import (
    PretrainedConfig,
    PreTrainedModel,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)


class Model(PreTrainedModel):
    config_class = PretrainedConfig

    def __init__(self, config: PretrainedConfig) -> None:
        super().__init__(config)
        self.layer = torch.nn.Linear(4, 1)
        self.post_init()

    def forward(self, inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        time.sleep(0.1)
        return {"loss": (self.layer(inputs) ** 2).mean()}


class MayEnd(TrainerCallback):
    def on_step_end(self, args, state, control, **_):
        control.should_training_stop = os.path.exists(os.environ["MAY_END"])


folder = sys.argv[1]
trainer = Trainer(
    Model(PretrainedConfig()),
    TrainingArguments(
        folder,
        max_steps=100_000,
        per_device_train_batch_size=1,
        logging_steps=1,
        save_steps=1,
        save_total_limit=2,
        report_to="wandb",
        disable_tqdm=True,
        use_cpu=True,
    ),
    train_dataset=[{"inputs": torch.randn(4)} for _ in range(1000)],
    callbacks=[MayEnd()],
)
# A checkpoint that was being written has no state yet.
whole = [path.parent for path in Path(folder).glob("checkpoint-*/trainer_state.json")]
last = max(whole, key=lambda path: int(path.name.rpartition("-")[2]), default=None)
trainer.train(resume_from_checkpoint=None if last is None else str(last))
