import torch
from transformers import PretrainedConfig, PreTrainedModel, Trainer, TrainingArguments


class Model(PreTrainedModel):
    config_class = PretrainedConfig

    def __init__(self, config):
        super().__init__(config)
        self.layer = torch.nn.Linear(4, 1)
        self.post_init()

    def forward(self, inputs, labels=None):
        return {"loss": ((self.layer(inputs) - labels) ** 2).mean(), "logits": inputs}


rows = [{"inputs": torch.randn(4), "labels": torch.ones(1)} for _ in range(64)]
arguments = TrainingArguments(
    "out", max_steps=12, logging_steps=1, eval_strategy="steps", eval_steps=4, save_strategy="no",
    report_to="wandb", disable_tqdm=True, use_cpu=True, run_name="trainer",
)  # fmt: skip
Trainer(Model(PretrainedConfig()), arguments, train_dataset=rows, eval_dataset=rows[:8]).train()
