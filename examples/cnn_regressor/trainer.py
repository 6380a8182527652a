"""Builds everything from the parameters and trains it, an epoch a step."""

import time
from pathlib import Path

import torch
from data import build_loader
from model import build_loss, build_model, build_optimizer, build_schedule
from torch.optim.lr_scheduler import ReduceLROnPlateau

from runyard import train


class Trainer:
    def __init__(self, params: train.Params, ranks: train.Ranks, folder: Path) -> None:
        self.params, self.ranks = params, ranks
        ranks.seed(params.seed)
        self.train_loader = build_loader(params, ranks, "train")
        self.valid_loader = build_loader(params, ranks, "val")
        self.model = ranks.wrap(build_model(params))
        self.loss = build_loss(params)
        self.optimizer = build_optimizer(params, self.model)
        self.schedule = build_schedule(params, self.optimizer)
        self.state = train.Checkpoint(
            folder=folder / "checkpoints",
            model=self.model,
            optimizer=self.optimizer,
            schedule=self.schedule,
            iteration=0,
            every_steps=1,
        )
        if params.log_to_screen:
            count = sum(p.numel() for p in self.model.parameters())
            ranks.print(f"{count / 1e6:.3f} million parameters on {ranks.size} x {ranks.device}")

    def train(self) -> float:
        """All epochs that are not done yet. The last validation loss."""
        start = self.state.resume() if self.params.save_checkpoint else 0
        saved = [self.state] if self.params.save_checkpoint else []
        loss = self.state.best_score
        show = self.params.log_to_screen
        for epoch in train.steps(start, self.params.max_epochs, *saved, show=show):
            began = time.monotonic()
            logged = {**self.train_epoch(epoch), **self.validate()}
            logged = self.ranks.mean(logged)
            loss = logged["val_loss"]
            train.check_finite(**logged)
            if isinstance(self.schedule, ReduceLROnPlateau):
                self.schedule.step(loss)
            else:
                self.schedule.step()
            best = self.state.score(loss)
            logged |= {
                "best_val_loss": self.state.best_score,
                "best_epoch": epoch + 1 if best else self.state.best_step,
                "wt_norm": _norm(p.detach() for p in self.model.parameters()),
                "learning_rate": self.optimizer.param_groups[0]["lr"],
                "time_per_epoch": time.monotonic() - began,
            }
            self.log(epoch + 1, logged)
        return loss

    def train_epoch(self, epoch: int) -> dict[str, float]:
        self.model.train()
        self.train_loader.sampler.set_epoch(epoch)
        losses, norms = [], []
        for inputs, targets in self.train_loader:
            inputs, targets = inputs.to(self.ranks.device), targets.to(self.ranks.device)
            loss = self.loss(self.model(inputs), targets)
            self.optimizer.zero_grad()
            loss.backward()
            norms.append(_norm(p.grad for p in self.model.parameters() if p.grad is not None))
            self.optimizer.step()
            losses.append(loss.detach())
        self.state.iteration += len(losses)
        return {"train_loss": float(torch.stack(losses).mean()), "grad": sum(norms) / len(norms)}

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        self.model.eval()
        losses = []
        for inputs, targets in self.valid_loader:
            inputs, targets = inputs.to(self.ranks.device), targets.to(self.ranks.device)
            predictions = self.model(inputs)
            if not losses:
                self.shown = targets[0, 0].cpu(), predictions[0, 0].cpu()
            losses.append(self.loss(predictions, targets))
        return {"val_loss": float(torch.stack(losses).mean())}

    def log(self, step: int, logged: dict[str, float]) -> None:
        if not self.ranks.main:
            return
        if self.params.log_to_screen:
            print(
                f"epoch {step}: train_loss {logged['train_loss']:.6f}, "
                f"val_loss {logged['val_loss']:.6f}, {logged['time_per_epoch']:.1f} s",
                flush=True,
            )
        if self.params.log_to_wandb:
            import matplotlib.pyplot as plt
            import wandb

            figure, axes = plt.subplots(1, 2, figsize=(8, 4))
            for axis, image, title in zip(axes, self.shown, ("target", "prediction"), strict=True):
                figure.colorbar(axis.imshow(image), ax=axis)
                axis.set_title(title)
            wandb.run.log({**logged, "image": wandb.Image(figure)}, step=step)
            plt.close(figure)


def _norm(tensors) -> float:
    return float(torch.stack([tensor.square().sum() for tensor in tensors]).sum().sqrt())
