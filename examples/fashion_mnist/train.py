"""A convolutional network of Keras learns articles of clothing. Settings come from wandb.config.

python train.py --made_up
"""

import argparse
import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
import wandb

DEFAULTS = {
    "epochs": 27,
    "layer_1_size": 32,
    "layer_2_size": 64,
    "hidden_layer_size": 128,
    "dropout": 0.3,
    "learn_rate": 0.01,
    "momentum": 0.9,
    "decay": 1e-6,
}


class LogEpochs(keras.callbacks.Callback):
    """One row an epoch: what early stopping counts as an iteration."""

    def __init__(self, run) -> None:
        super().__init__()
        self.run = run

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        self.run.log({"epoch": epoch, **(logs or {})})


def build_model(config) -> keras.Model:
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            layers.Conv2D(config.layer_1_size, 5, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(config.layer_2_size, 5, activation="relu"),
            layers.MaxPooling2D(),
            layers.Dropout(config.dropout),
            layers.Flatten(),
            layers.Dense(config.hidden_layer_size, activation="relu"),
            layers.Dense(10, activation="softmax"),
        ]
    )
    optimizer = keras.optimizers.SGD(
        config.learn_rate, config.momentum, nesterov=True, weight_decay=config.decay
    )
    model.compile(optimizer, loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def make_up(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Ten coarse patterns with noise over them, as large as Fashion-MNIST's images."""
    rng = np.random.default_rng(seed)
    patterns = np.random.default_rng(0).integers(0, 256, (10, 7, 7))
    labels = rng.integers(0, 10, count)
    coarse = patterns[labels].repeat(4, axis=1).repeat(4, axis=2)
    return np.clip(coarse + rng.normal(0, 40, coarse.shape), 0, 255), labels


def load(made_up: bool):
    if made_up:
        parts = make_up(512, seed=1), make_up(128, seed=2)
    else:
        parts = keras.datasets.fashion_mnist.load_data()  # Kept in ~/.keras after the first time.
    return [(images[..., None].astype("float32") / 255, labels) for images, labels in parts]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--made_up", action="store_true", help="patterns instead of Fashion-MNIST")
    parser.add_argument("--fetch", action="store_true", help="bring Fashion-MNIST here, and end")
    for name, value in DEFAULTS.items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    args = parser.parse_args()
    if args.fetch:
        keras.datasets.fashion_mnist.load_data()
        return

    settings = {name: getattr(args, name) for name in DEFAULTS}
    with wandb.init(project="fashion-mnist", config=settings) as run:
        keras.utils.set_random_seed(0)
        training, validation = load(args.made_up)
        build_model(run.config).fit(
            *training,
            validation_data=validation,
            epochs=run.config.epochs,
            batch_size=128,
            callbacks=[LogEpochs(run)],
            verbose=2,
        )


if __name__ == "__main__":
    main()
