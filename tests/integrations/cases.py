"""Which frameworks are tried, and what has to arrive on the server."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.environments import CACHE

PROGRAMS = Path(__file__).parent / "programs"
_RESULTS = CACHE / "integrations"


@dataclass(frozen=True)
class Case:
    """`metric` has at least so many `rows`; `config` is a dotted name among the run's settings;
    `kept` a type of artifact, or the name of a chart or image, that is there afterwards."""

    name: str
    program: str
    package: str
    by: str
    metric: str
    rows: int
    config: str = ""
    artifact: str = ""
    media: str = ""
    environment: str = "integrations"


@dataclass(frozen=True)
class Result:
    version: str
    wandb: str
    metrics: int
    settings: int


CASES = (
    Case("transformers", "transformers_trainer", "transformers", '`report_to="wandb"`',
         "train/loss", 12, config="max_steps"),
    Case("Accelerate", "accelerate_tracker", "accelerate", '`log_with="wandb"`',
         "train/loss", 10, config="lr"),
    Case("Lightning", "lightning_logger", "lightning", "`WandbLogger(log_model=\"all\")`",
         "train/loss", 12, config="lr", artifact="model"),
    Case("Keras", "keras_callback", "keras", "`WandbMetricsLogger`, `WandbModelCheckpoint`",
         "epoch/val_loss", 4, config="units", artifact="model", environment="tensorflow"),
    Case("XGBoost", "xgboost_callback", "xgboost", "`WandbCallback(log_model=True)`",
         "train-rmse", 10, config="max_depth", artifact="model"),
    Case("LightGBM", "lightgbm_callback", "lightgbm", "`wandb_callback`, `log_summary`",
         "train_rmse", 10, artifact="model"),
    Case("CatBoost", "catboost_callback", "catboost", "`WandbCallback`, `log_summary`",
         "learn-RMSE", 10, artifact="model"),
    Case("scikit-learn", "sklearn_plots", "scikit-learn", "`wandb.sklearn.plot_classifier`",
         "accuracy", 1, config="C", media="confusion_matrix"),
    Case("Stable-Baselines3", "stable_baselines", "stable-baselines3",
         "`WandbCallback`, `sync_tensorboard=True`",
         "train/loss", 6, config="algo"),
    Case("Hydra", "hydra_program", "hydra-core", "its configuration as `config=`",
         "loss", 5, config="model.depth"),
    Case("Optuna", "optuna_callback", "optuna", "`WeightsAndBiasesCallback`",
         "loss", 8, config="direction"),
    Case("TensorBoard", "tensorboard_sync", "tensorboard", "`sync_tensorboard=True`",
         "train/loss", 10, media="noise"),
    Case("Ultralytics", "ultralytics_callback", "ultralytics", "its own callback",
         "train/box_loss", 2, config="epochs", environment="ultralytics"),
)  # fmt: skip


def write_result(case: Case, result: Result) -> None:
    _RESULTS.mkdir(parents=True, exist_ok=True)
    (_RESULTS / f"{case.program}.json").write_text(json.dumps(asdict(result)))


def read_results() -> dict[str, Result]:
    """By program; of the last time that each was tried."""
    return {
        file.stem: Result(**json.loads(file.read_text()))
        for file in _RESULTS.glob("*.json")
    }  # fmt: skip
