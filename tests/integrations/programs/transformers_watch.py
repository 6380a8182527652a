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
# Its callback looks at gradients at every 100th step.
arguments = TrainingArguments(
    "out", max_steps=220, logging_steps=10, save_strategy="no",
    report_to="wandb", disable_tqdm=True, use_cpu=True, run_name="trainer",
)  # fmt: skip
Trainer(Model(PretrainedConfig()), arguments, train_dataset=rows).train()
