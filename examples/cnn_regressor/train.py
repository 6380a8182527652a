"""Train the regressor: on a laptop, on the GPUs of a node, on several nodes, in a sweep.

python train.py --config=laptop
"""

import os
import subprocess
from pathlib import Path

import torch
from trainer import Trainer

from runyard import train

HERE = Path(__file__).parent


def main(
    yaml_config: Path = HERE / "config.yaml",
    config: str = "test",
    root_dir: Path = Path(),
    run_num: str = "0",
    sweep_id: str | None = None,
    **changes: object,
) -> None:
    """Train what a section of the YAML file describes; --lr=1E-4 and the like change single values.

    With --sweep_id one trial of that W&B sweep is taken and trained by all ranks.
    """
    with train.distributed() as ranks:
        params = train.Params.load(yaml_config, config).merge(changes, known=True)
        if sweep_id is None:
            run(ranks, params, config, Path(root_dir), run_num, changes)
            return
        owner = {"project": params.project, "entity": params.entity}

        def trial(values: dict[str, object]) -> None:
            run(ranks, params.merge(values), config, Path(root_dir), None, values)

        if not train.sweep_trial(sweep_id, trial, **owner):
            ranks.print(f"sweep {sweep_id} has no trial left")


def run(
    ranks: train.Ranks,
    params: train.Params,
    config: str,
    root: Path,
    number: str | None,
    values: dict[str, object],
) -> None:
    """Name the run and its folder, open it on rank 0, tell all ranks, and train."""
    # Rank 0's word counts: an agent that it asked told it alone.
    params.name, folder = ranks.from_main(lambda: place_of(config, root, number, values))
    params.group = config
    if ranks.main:
        for part in ("checkpoints", "wandb"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        if params.log_versions:
            params.versions = versions()
    same_run = train.Checkpoint(folder=folder / "checkpoints").wandb()
    if ranks.main and params.log_to_wandb:
        import wandb  # Here, as in the trainer: the other ranks need none, and start sooner.

        opened = wandb.init(
            dir=folder,
            config=params.plain(),
            name=params.name,
            group=params.group,
            project=params.project,
            entity=params.entity,
            **{"resume": "allow", **same_run},
        )
        params.merge(opened.config)  # What a sweep chose is in there, and wins.
    params = ranks.from_main(lambda: params)
    if ranks.main:
        params.dump(folder / "hyperparams.yaml")
        if params.log_to_screen:
            print(params, flush=True)
    loss = Trainer(params, ranks, folder).train()
    if params.log_to_screen:
        ranks.print(f"done: val_loss {loss!r}")


def place_of(
    config: str, root: Path, number: str | None, values: dict[str, object]
) -> tuple[str, Path]:
    """The run's name, and its folder, which is called like it in a sweep."""
    given = os.environ.get("RUNYARD_CHECKPOINT_DIR")
    if given and number is not None:  # runyard has named the trial and made its folder.
        return Path(given).parent.name, Path(given).parent
    if sweep := os.environ.get("WANDB_SWEEP_ID"):
        name = train.trial_name(config, values)
        return name, root / "sweeps" / sweep / name
    return f"{config}-{number}", root / "expts" / config / number


def versions() -> dict[str, str | None]:
    """Of PyTorch and of the code, which has no repository in a job: runyard knows its commit."""

    def ask_git(*words: str) -> str | None:
        command = ["git", "-C", str(HERE), "rev-parse", *words]
        return subprocess.run(command, capture_output=True, text=True).stdout.strip() or None

    commit = os.environ.get("WANDB_GIT_COMMIT") or ask_git("HEAD")
    return {"torch": torch.__version__, "commit": commit, "branch": ask_git("--abbrev-ref", "HEAD")}


if __name__ == "__main__":
    train.command(main)
