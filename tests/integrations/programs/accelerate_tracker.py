import torch
from accelerate import Accelerator

accelerator = Accelerator(cpu=True, log_with="wandb")
accelerator.init_trackers("accelerate", config={"lr": 0.1})
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = accelerator.prepare(model, optimizer)
for step in range(10):
    loss = (model(torch.ones(8, 4)) ** 2).mean()
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    accelerator.log({"train/loss": loss.item()}, step=step)
accelerator.end_training()
