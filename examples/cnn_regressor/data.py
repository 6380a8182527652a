"""The data. Noise here, so that nothing can be learnt but its mean; put your own in its place."""

import torch
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from runyard import train


class Noise(Dataset):
    """Pairs of images of uniform noise, drawn anew whenever they are asked for."""

    def __init__(self, params: train.Params) -> None:
        self.count = params.num_samples
        self.input_shape = (params.in_chan, params.image_size, params.image_size)
        self.target_shape = (params.out_chan, params.image_size, params.image_size)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.rand(self.input_shape), torch.rand(self.target_shape)


class Saved(Dataset):
    """Pairs of images from a file of torch.save: a dict with 'input' and 'target'."""

    def __init__(self, path: str) -> None:
        self.pairs = torch.load(path, weights_only=True)

    def __len__(self) -> int:
        return len(self.pairs["input"])

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.pairs["input"][index], self.pairs["target"][index]


def build_loader(params: train.Params, ranks: train.Ranks, part: str) -> DataLoader:
    """This rank's part of the data, "train" or "val"; the batch size is split over the ranks."""
    path, size = f"{part}_path", "batch_size" if part == "train" else "valid_batch_size"
    data = Saved(params[path]) if params[path] else Noise(params)
    sampler = DistributedSampler(
        data, ranks.size, ranks.rank, shuffle=part == "train", seed=params.seed, drop_last=True
    )
    return DataLoader(
        data,
        batch_size=ranks.split(params[size], size),
        sampler=sampler,
        num_workers=params.num_data_workers,
        drop_last=True,
        pin_memory=torch.cuda.is_available(),
    )
