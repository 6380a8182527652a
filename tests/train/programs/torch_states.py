"""What torch's states go through: wrappers, foreign files, odd numbers, the safe loader."""

import os
import pickle
import socket
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import wandb

from runyard import train
from runyard.train.torch_state import read_state

FOLDER = Path(sys.argv[1])
assert wandb.Histogram, "loaded, as in a program that logs"


class YamlFloat(float):
    """A number as round-trip YAML readers make it, which the safe loader refuses to read."""


def model() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))


def same(first: torch.nn.Module, second: torch.nn.Module) -> bool:
    pairs = zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def in_ddp(plain: torch.nn.Module) -> torch.nn.Module:
    return torch.nn.parallel.DistributedDataParallel(plain)


with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free.getsockname()[1]))
torch.distributed.init_process_group("gloo", rank=0, world_size=1)

# Either way, through checkpoints.
for name, save_as, load_as in (
    ("plain to ddp", lambda m: m, in_ddp),
    ("ddp to plain", in_ddp, lambda m: m),
    ("compiled to plain", lambda m: torch.compile(m), lambda m: m),
):
    source, target = model(), model()
    train.Checkpoint(folder=FOLDER / name, model=save_as(source)).save(3)
    assert train.Checkpoint(folder=FOLDER / name, model=load_as(target)).resume() == 3
    assert same(source, target), name
    # What is on disk is torch's own file, for any loader.
    plain = torch.load(FOLDER / name / "latest" / "model.pt", weights_only=True)
    assert list(plain) == list(source.state_dict())

# Either way, through files that others wrote.
source = model()
torch.save({"epoch": 1, "model_state": in_ddp(source).state_dict()}, FOLDER / "ckpt.tar")
assert same(train.load_model(model(), FOLDER / "ckpt.tar"), source)
torch.save(source.state_dict(), FOLDER / "plain.pt")
target = in_ddp(model())
train.load_model(target, FOLDER / "plain.pt")
assert same(target.module, source)
assert same(train.load_model(model(), FOLDER / "ddp to plain" / "latest"), model()) is False

# Numbers of other libraries go through the safe loader as plain ones; as they are, it refuses them.
torch.save({"lr": YamlFloat(1e-3)}, FOLDER / "refused.pt")
with pytest.raises(pickle.UnpicklingError, match="YamlFloat"):
    torch.load(FOLDER / "refused.pt")
optimizer = torch.optim.Adam(source.parameters(), lr=YamlFloat(1e-3), eps=np.float64(1e-8))
(source(torch.ones(4, 2)).sum()).backward()
optimizer.step()
train.Checkpoint(folder=FOLDER / "numbers", optimizer=optimizer).save(1)
fresh = torch.optim.Adam(model().parameters(), lr=1.0)
train.Checkpoint(folder=FOLDER / "numbers", optimizer=fresh).resume()
assert type(fresh.param_groups[0]["lr"]) is float
assert fresh.param_groups[0]["lr"] == 1e-3
assert torch.equal(
    fresh.state_dict()["state"][0]["exp_avg"], optimizer.state_dict()["state"][0]["exp_avg"]
)

# What a GPU wrote can be read without one, though torch by itself refuses.
recorded = Path(__file__).parents[1] / "recorded" / "checkpoint-of-an-h200" / "model.pt"
if not torch.cuda.is_available():
    with pytest.raises(RuntimeError, match="on a CUDA device"):
        torch.load(recorded)
assert {value.device.type for value in read_state(str(recorded)).values()} == {"cpu"}


# What the safe loader would refuse is told before training, by its place.
class Odd:
    def state_dict(self) -> dict[str, object]:
        return {"deep": [Path()]}

    def load_state_dict(self, state: object) -> None: ...


with pytest.raises(train.TrainError, match=r"thing: a checkpoint cannot hold deep\[0\]"):
    train.Checkpoint(folder=FOLDER / "odd", thing=Odd()).resume()

# Tensors, in any type, and generators as parts.
generator = torch.Generator().manual_seed(3)
parts = {
    "bf16": torch.arange(5).to(torch.bfloat16),
    "scalar": torch.tensor(2.5),
    "flags": torch.tensor([True, False]),
    "nothing": torch.zeros(0, 4),
    "generator": generator,
}
train.Checkpoint(folder=FOLDER / "parts", **parts).save(1)
expected = torch.rand(3, generator=generator)
other = torch.Generator()
bf16 = torch.zeros(5, dtype=torch.bfloat16)
state = train.Checkpoint(
    folder=FOLDER / "parts", bf16=bf16, scalar=None, flags=None, nothing=None, generator=other
)
state.resume()
assert torch.equal(bf16, parts["bf16"])
assert torch.equal(state.scalar, parts["scalar"])
assert torch.equal(state.flags, parts["flags"])
assert state.nothing.shape == (0, 4)
assert torch.equal(torch.rand(3, generator=other), expected)

# A slice is stored as itself, not as all of what it was cut from.
table = torch.zeros(1000, 1000)
train.Checkpoint(folder=FOLDER / "slice", rows=torch.nn.ParameterList([table[:2]])).save(1)
assert (FOLDER / "slice" / "latest" / "rows.pt").stat().st_size < 100_000

# Names, gradients and what is not finite.
net = in_ddp(model())
net(torch.ones(4, 2)).sum().backward()
assert list(train.named_arrays(net)) == ["0.weight", "0.bias", "1.weight", "1.bias"]
found = train.histograms(parameters=net, gradients=net)
assert "parameters/0.weight" in found
# Of a sum over four rows the last bias has the gradient 4, whatever its own value is.
bins = found["gradients/1.bias"].bins
assert 3 < bins[0] <= 4 <= bins[-1] < 5, bins
train.check_finite(model=net, loss=torch.tensor(1.0))
with torch.no_grad():
    net.module[1].bias[0] = float("nan")
with pytest.raises(train.NotFinite, match=r"model\.1\.bias"):
    train.check_finite(model=net)
torch.distributed.destroy_process_group()
print("all well")
