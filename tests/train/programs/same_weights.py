"""Whether two Lightning checkpoints hold the same weights and optimiser: `same_weights.py A B`."""

import sys

import torch

one, other = (torch.load(path, weights_only=False) for path in sys.argv[1:])


def flat(value: object) -> list[object]:
    if isinstance(value, dict):
        return [item for key in sorted(value, key=str) for item in flat(value[key])]
    if isinstance(value, list | tuple):
        return [item for inside in value for item in flat(inside)]
    return [value.tolist() if isinstance(value, torch.Tensor) else value]


keys = ("state_dict", "optimizer_states", "epoch", "global_step")
print("same" if all(flat(one[key]) == flat(other[key]) for key in keys) else "different")
