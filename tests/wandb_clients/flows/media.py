"""Images, lists of images, histograms, sounds, videos, HTML and point clouds."""

import wave
from pathlib import Path

import numpy as np
import wandb

with wave.open("sound.wav", "wb") as sound:
    sound.setparams((1, 2, 8000, 0, "NONE", ""))
    sound.writeframes(bytes(8000))
Path("film.mp4").write_bytes(b"any bytes: the client does not look into a file")

run = wandb.init()
noise = np.arange(32 * 24 * 3, dtype=np.uint8).reshape(24, 32, 3)
for step in range(2):
    run.log(
        {
            "image": wandb.Image(noise + step, caption=f"number {step}"),
            "images": [wandb.Image(noise + 5 * step + index) for index in range(3)],
            "histogram": wandb.Histogram(list(range(100))),
            "page": wandb.Html(f"<p>step {step}</p>"),
            "sound": wandb.Audio("sound.wav", caption="silence"),
            "film": wandb.Video("film.mp4", format="mp4"),
            "cloud": wandb.Object3D(np.arange(30.0).reshape(10, 3) + step),
        }
    )
run.finish()
