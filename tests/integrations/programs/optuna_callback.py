import optuna
from optuna_integration.wandb import WeightsAndBiasesCallback

callback = WeightsAndBiasesCallback(metric_name="loss")
study = optuna.create_study()
study.optimize(lambda trial: trial.suggest_float("x", -1, 1) ** 2, n_trials=8, callbacks=[callback])
