"""Teach a small network to tell two spirals apart. numpy and wandb are all it needs.

python train.py --lr 0.003 --hidden 32 --epochs 60
"""

import argparse
from itertools import pairwise

import numpy as np
import wandb


def spirals(count: int, noise: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Points of two arms that wind around each other, and the arm to which each belongs."""
    label = rng.integers(0, 2, count)
    turn = np.sqrt(rng.uniform(0.02, 1, count)) * 4 * np.pi
    angle = turn + np.pi * label
    points = np.stack([turn * np.cos(angle), turn * np.sin(angle)], axis=1) / (4 * np.pi)
    return points + rng.normal(0, noise, points.shape), label.astype(float)


class Network:
    """Two hidden layers with tanh, one output: the log-odds of the second arm."""

    def __init__(self, hidden: int, rng: np.random.Generator) -> None:
        sizes = [2, hidden, hidden, 1]
        self.weights = [
            rng.normal(0, (1.5 if i == 0 else 1) / np.sqrt(a), (a, b))
            for i, (a, b) in enumerate(pairwise(sizes))
        ]
        self.biases = [rng.uniform(-1, 1, b) * (b > 1) for b in sizes[1:]]

    def forward(self, points: np.ndarray) -> list[np.ndarray]:
        layers = [points * 4]
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            out = layers[-1] @ weight + bias
            layers.append(out if i == len(self.weights) - 1 else np.tanh(out))
        return layers

    def gradients(self, layers: list[np.ndarray], error: np.ndarray) -> list[np.ndarray]:
        """Gradients of the weights, then of the biases."""
        to_weights, to_biases = [], []
        for weight, below in zip(reversed(self.weights), reversed(layers[:-1]), strict=True):
            to_weights.insert(0, below.T @ error)
            to_biases.insert(0, error.sum(axis=0))
            error = (error @ weight.T) * (1 - below**2)
        return to_weights + to_biases


class Adam:
    def __init__(self, values: list[np.ndarray], lr: float) -> None:
        self.values, self.lr, self.time = values, lr, 0
        self.mean = [np.zeros_like(value) for value in values]
        self.square = [np.zeros_like(value) for value in values]

    def step(self, gradients: list[np.ndarray]) -> None:
        self.time += 1
        for value, gradient, mean, square in zip(
            self.values, gradients, self.mean, self.square, strict=True
        ):
            mean += 0.1 * (gradient - mean)
            square += 0.001 * (gradient**2 - square)
            scaled = (mean / (1 - 0.9**self.time)) / (
                np.sqrt(square / (1 - 0.999**self.time)) + 1e-8
            )
            value -= self.lr * scaled


def evaluate(network: Network, points: np.ndarray, label: np.ndarray) -> tuple[float, float]:
    """Loss and accuracy."""
    odds = network.forward(points)[-1][:, 0]
    loss = np.mean(np.logaddexp(0, odds) - label * odds)
    return float(loss), float(np.mean((odds > 0) == (label > 0.5)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lr", type=float, default=0.003)
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument("--noise", type=float, default=0.03)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    run = wandb.init(project="spirals", config=vars(args))
    config = run.config
    rng = np.random.default_rng(config.seed)
    train, train_label = spirals(2000, config.noise, rng)
    test, test_label = spirals(1000, config.noise, rng)
    network = Network(config.hidden, rng)
    adam = Adam(network.weights + network.biases, config.lr)

    for epoch in range(config.epochs):
        order = rng.permutation(len(train))
        for batch in np.split(order, range(config.batch, len(order), config.batch)):
            layers = network.forward(train[batch])
            chance = 1 / (1 + np.exp(-layers[-1][:, 0]))
            error = (chance - train_label[batch])[:, None] / len(batch)
            adam.step(network.gradients(layers, error))
        loss, accuracy = evaluate(network, train, train_label)
        test_loss, test_accuracy = evaluate(network, test, test_label)
        run.log(
            {
                "train/loss": loss,
                "train/accuracy": accuracy,
                "test/loss": test_loss,
                "test/accuracy": test_accuracy,
            }
        )
        if (epoch + 1) % 10 == 0:
            print(f"epoch {epoch + 1:3d}  loss {test_loss:.4f}  accuracy {test_accuracy:.3f}")
    run.finish()


if __name__ == "__main__":
    main()
