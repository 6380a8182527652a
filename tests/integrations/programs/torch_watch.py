import torch
import wandb

model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
run = wandb.init()
run.watch(model, log="all", log_freq=2, log_graph=True)
for _ in range(6):
    optimizer.zero_grad()
    loss = model(torch.randn(8, 4)).square().mean()
    loss.backward()
    optimizer.step()
    run.log({"loss": loss.item()})
run.finish()
