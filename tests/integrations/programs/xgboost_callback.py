import numpy
import wandb
import xgboost
from wandb.integration.xgboost import WandbCallback

run = wandb.init(config={"max_depth": 2})
x = numpy.random.rand(200, 4)
data = xgboost.DMatrix(x, label=x.sum(1))
xgboost.train(
    {"max_depth": 2, "eval_metric": "rmse"}, data, 10, evals=[(data, "train")], verbose_eval=False,
    callbacks=[WandbCallback(log_model=True)],
)  # fmt: skip
run.finish()
