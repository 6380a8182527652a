"""What a sweep's `scheduler:` names: where Optuna searches, and when it stops a run early."""

import optuna


def search_space(trial):
    return {"loss": trial.suggest_categorical("loss", [1, 2])}


def optimizer(sweep):
    return optuna.create_study(
        sampler=optuna.samplers.GridSampler({"loss": [1, 2]}, seed=0),
        pruner=optuna.pruners.ThresholdPruner(upper=1.5),
    )
