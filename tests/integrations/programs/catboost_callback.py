import catboost
import numpy
import wandb
from wandb.integration.catboost import WandbCallback, log_summary

run = wandb.init()
x = numpy.random.rand(200, 4)
model = catboost.CatBoostRegressor(
    iterations=10, verbose=False, thread_count=1, allow_writing_files=False
)
model.fit(x, x.sum(1), eval_set=(x, x.sum(1)), callbacks=[WandbCallback()])
log_summary(model, save_model_checkpoint=True)
run.finish()
