"""Images, lists of images, histograms, pages and point clouds."""

import numpy as np
import wandb

run = wandb.init()
noise = np.arange(32 * 24 * 3, dtype=np.uint8).reshape(24, 32, 3)
for step in range(2):
    run.log(
        {
            "image": wandb.Image(noise + step, caption=f"number {step}"),
            "images": [wandb.Image(noise + 5 * step + index) for index in range(3)],
            "histogram": wandb.Histogram(list(range(100))),
            "page": wandb.Html(f"<p>step {step}</p>"),
            "cloud": wandb.Object3D(np.arange(30.0).reshape(10, 3) + step),
        }
    )
run.finish()
