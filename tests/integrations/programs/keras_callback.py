import keras
import numpy
import wandb
from wandb.integration.keras import WandbMetricsLogger, WandbModelCheckpoint

wandb.init(config={"units": 8})
model = keras.Sequential([keras.layers.Dense(8, "relu"), keras.layers.Dense(1)])
model.compile("adam", "mse")
x = numpy.random.rand(64, 4)
model.fit(
    x, x.sum(1), validation_split=0.25, epochs=4, verbose=0,
    callbacks=[WandbMetricsLogger(), WandbModelCheckpoint("best.keras", save_best_only=True)],
)  # fmt: skip
wandb.finish()
