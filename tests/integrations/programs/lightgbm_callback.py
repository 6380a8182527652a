import lightgbm
import numpy
import wandb
from wandb.integration.lightgbm import log_summary, wandb_callback

run = wandb.init()
x = numpy.random.rand(200, 4)
data = lightgbm.Dataset(x, label=x.sum(1))
model = lightgbm.train(
    {"objective": "regression", "metric": "rmse", "verbose": -1, "num_threads": 1}, data, 10,
    valid_sets=[data], valid_names=["train"], callbacks=[wandb_callback()],
)  # fmt: skip
log_summary(model, save_model_checkpoint=True)
run.finish()
