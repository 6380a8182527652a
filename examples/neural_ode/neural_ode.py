"""Learn the right-hand side of a differential equation from its solutions.

python neural_ode.py make-data
python neural_ode.py train-model --width_size=64 --depth=2
"""

import time
from pathlib import Path

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import wandb

from runyard import train

DATA = "my-dataset"


class NeuralODE(eqx.Module):
    """dy/dt is a network of y."""

    rhs: eqx.nn.MLP

    def __init__(self, size: int, width: int, depth: int, key: jax.Array) -> None:
        self.rhs = eqx.nn.MLP(size, size, width, depth, activation=jax.nn.softplus, key=key)

    def __call__(self, times: jax.Array, start: jax.Array) -> jax.Array:
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, args: self.rhs(y)),
            diffrax.Tsit5(),
            t0=times[0],
            t1=times[-1],
            dt0=times[1] - times[0],
            y0=start,
            stepsize_controller=diffrax.PIDController(rtol=1e-3, atol=1e-6),
            saveat=diffrax.SaveAt(ts=times),
        )
        return solution.ys


def true_series(size: int, key: jax.Array) -> tuple[np.ndarray, np.ndarray]:
    """Deformed oscillations from random starts: the times, and (size, 100, 2) values."""

    def slope(t, y, args):
        x = y / (1 + y)
        return jnp.stack([x[1], -x[0]])

    times = jnp.linspace(0, 10, 100)

    @jax.jit
    @jax.vmap
    def solve(start: jax.Array) -> jax.Array:
        return diffrax.diffeqsolve(
            diffrax.ODETerm(slope),
            diffrax.Tsit5(),
            t0=times[0],
            t1=times[-1],
            dt0=0.1,
            y0=start,
            saveat=diffrax.SaveAt(ts=times),
        ).ys

    starts = jax.random.uniform(key, (size, 2), minval=-0.6, maxval=1)
    return np.asarray(times), np.asarray(solve(starts))


def make_arrays(seed: int, train_size: int, test_size: int) -> dict[str, np.ndarray]:
    train_key, test_key = jax.random.split(jax.random.key(seed))
    times, series = true_series(train_size, train_key)
    test_times, test_series = true_series(test_size, test_key)
    return {
        "times": times,
        "series": series,
        "length": np.array(series.shape[1]),
        "dimension": np.array(series.shape[2]),
        "test_times": test_times,
        "test_series": test_series,
    }


def make_data(seed: int = 42, train_size: int = 256, test_size: int = 256) -> None:
    """Solve the true equation and store the series as a version of the data set."""
    config = {"seed": seed, "train_size": train_size, "test_size": test_size}
    with wandb.init(project="neural-ode", job_type="create-dataset", config=config) as run:
        path = Path(run.dir) / "dataset.npz"
        np.savez(path, **make_arrays(**config))
        artifact = wandb.Artifact(DATA, type="dataset", metadata=config)
        artifact.add_file(str(path))
        run.log_artifact(artifact)


def load_data(run: wandb.Run) -> dict[str, np.ndarray]:
    """The newest version of the data set; made on the spot where there is no server to ask."""
    if run.offline or run.disabled:
        return make_arrays(seed=42, train_size=256, test_size=256)
    folder = run.use_artifact(f"{DATA}:latest").download()
    with np.load(Path(folder) / "dataset.npz") as stored:
        return dict(stored)


def mean_error(model: NeuralODE, times: jax.Array, series: jax.Array) -> jax.Array:
    predicted = jax.vmap(model, in_axes=(None, 0))(times, series[:, 0])
    return jnp.mean((series - predicted) ** 2)


test_error = eqx.filter_jit(mean_error)


@eqx.filter_jit
def make_step(model, opt_state, optimizer, times, series):
    loss, gradients = eqx.filter_value_and_grad(mean_error)(model, times, series)
    changes, opt_state = optimizer.update(gradients, opt_state)
    return eqx.apply_updates(model, changes), opt_state, loss, gradients, changes


def train_model(
    batch_size: int = 32,
    lr_strategy: tuple[float, ...] = (3e-3, 3e-3),
    steps_strategy: tuple[int, ...] = (500, 500),
    length_strategy: tuple[float, ...] = (0.1, 1),
    width_size: int = 64,
    depth: int = 2,
    seed: int = 5678,
    plot: bool = False,
    print_every: int = 100,
    watch_run: bool = False,
) -> None:
    """Fit the network: first to the beginning of each series, then to the whole of it."""
    settings = {
        "batch_size": batch_size,
        "lr_strategy": lr_strategy,
        "steps_strategy": steps_strategy,
        "length_strategy": length_strategy,
        "width_size": width_size,
        "depth": depth,
        "seed": seed,
        "print_every": print_every,
    }
    state = train.Checkpoint(every_seconds=300)
    run = wandb.init(project="neural-ode", config=settings, **state.wandb())
    chosen = train.Params(settings).merge({key: run.config[key] for key in settings})
    data = load_data(run)
    times, series = jnp.asarray(data["times"]), jnp.asarray(data["series"])
    test_times, test_series = jnp.asarray(data["test_times"]), jnp.asarray(data["test_series"])

    model_key, batch_key = jax.random.split(jax.random.key(chosen.seed))
    state.model = NeuralODE(series.shape[-1], chosen.width_size, chosen.depth, model_key)
    optimizers = [optax.adabelief(lr) for lr in chosen.lr_strategy]
    total = sum(chosen.steps_strategy)
    state.opt_state = optimizers[0].init(eqx.filter(state.model, eqx.is_inexact_array))
    start = state.resume()
    lengths = [int(len(times) * share) for share in chosen.length_strategy]
    # Every phase is compiled before the first step: what cannot work says so at once.
    parameters = eqx.filter(state.model, eqx.is_inexact_array)
    first = len(lengths) if start == total else place_of(start, chosen.steps_strategy)[0]
    for optimizer, length in zip(optimizers[first:], lengths[first:], strict=True):
        rows = series[: chosen.batch_size, :length]
        make_step(state.model, optimizer.init(parameters), optimizer, times[:length], rows)

    began = time.monotonic()
    for count in train.steps(start, total, state, phases=costs(chosen)):
        phase, step = place_of(count, chosen.steps_strategy)
        if step == 0:
            parameters = eqx.filter(state.model, eqx.is_inexact_array)
            state.opt_state = optimizers[phase].init(parameters)
        length = lengths[phase]
        chosen_rows = batch_rows(batch_key, count, len(series), chosen.batch_size)
        state.model, state.opt_state, loss, gradients, changes = make_step(
            state.model,
            state.opt_state,
            optimizers[phase],
            times[:length],
            series[chosen_rows, :length],
        )
        if step % chosen.print_every == 0 or step == chosen.steps_strategy[phase] - 1:
            logged = {
                "step": step,
                "loss_train": float(loss),
                "loss_test": float(test_error(state.model, test_times, test_series)),
                "computation time": time.monotonic() - began,
            }
            train.check_finite(loss_train=logged["loss_train"])
            print(f"phase {phase + 1}, step {step}: loss {loss:.3e}", flush=True)
            if watch_run:
                logged |= train.histograms(
                    parameters=state.model, gradients=gradients, updates=changes
                )
            # The count goes on over both phases, and rows that a cut-off attempt sent are kept.
            run.log(logged, step=count)
            began = time.monotonic()

    file = Path(run.dir) / "model.eqx"
    eqx.tree_serialise_leaves(file, state.model)
    artifact = wandb.Artifact("neural-ode", type="model", metadata=chosen.plain())
    artifact.add_file(str(file))
    run.log_artifact(artifact)
    if plot:
        save_plot(state.model, times, series[0])
    run.finish()


def place_of(count: int, steps_strategy: tuple[int, ...]) -> tuple[int, int]:
    """The phase, and the step in it, after `count` steps in all."""
    phase = 0
    while count >= steps_strategy[phase]:
        count -= steps_strategy[phase]
        phase += 1
    return phase, count


def costs(chosen: train.Params) -> list[tuple[int, float]]:
    """The steps of each phase, and what one of them costs: the solver's part grows with the length
    of the series, another does not. Only the estimate of the time that is left hangs on it."""
    steps, shares = chosen.steps_strategy, chosen.length_strategy
    return [(count, 0.2 + share) for count, share in zip(steps, shares, strict=False)]


def batch_rows(key: jax.Array, count: int, rows: int, batch_size: int) -> jax.Array:
    """Which series step `count` trains on: every pass over the data is a permutation of its own."""
    batches = max(1, rows // batch_size)
    passes, place = divmod(count, batches)
    order = jax.random.permutation(jax.random.fold_in(key, passes), rows)
    return order[place * batch_size : (place + 1) * batch_size]


def save_plot(model: NeuralODE, times: jax.Array, series: jax.Array) -> None:
    import matplotlib.pyplot as plt

    predicted = model(times, series[0])
    for component in range(series.shape[1]):
        plt.plot(times, series[:, component], color="tab:blue", label="real")
        plt.plot(times, predicted[:, component], color="tab:orange", label="predicted")
    plt.legend()
    plt.savefig("neural_ode.png")
    plt.close()


if __name__ == "__main__":
    train.command(train_model, make_data)
