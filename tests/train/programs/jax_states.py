"""What JAX's states go through: Equinox models, Optax states, keys, half precision."""

import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
import pytest
import wandb

from runyard import train

FOLDER = Path(sys.argv[1])
assert wandb.Histogram, "loaded, as in a program that logs"


def make(seed: int) -> tuple[eqx.nn.MLP, optax.GradientTransformation, object]:
    model = eqx.nn.MLP(2, 1, 8, 2, key=jax.random.key(seed))
    optimizer = optax.adam(1e-2)
    return model, optimizer, optimizer.init(eqx.filter(model, eqx.is_array))


@eqx.filter_jit
def step(model, opt_state, inputs):  # type: ignore[no-untyped-def]
    loss, grads = eqx.filter_value_and_grad(
        lambda m: jnp.mean((jax.vmap(m)(inputs)[:, 0] - inputs.sum(1)) ** 2)
    )(model)
    updates, opt_state = optimizer.update(grads, opt_state)
    return eqx.apply_updates(model, updates), opt_state, loss


def train_to(total: int, folder: str, seed: int) -> train.Checkpoint:
    model, _, opt_state = make(seed)
    state = train.Checkpoint(
        folder=FOLDER / folder, model=model, opt_state=opt_state, key=jax.random.key(7)
    )
    for _ in train.steps(state.resume(), total, state, show=False):
        state.key, key = jax.random.split(state.key)
        inputs = jax.random.normal(key, (16, 2))
        state.model, state.opt_state, _ = step(state.model, state.opt_state, inputs)
    return state


_, optimizer, _ = make(0)
uncut = train_to(10, "uncut", 0)
train_to(4, "cut", 0)
cut = train_to(10, "cut", 99)  # Made with another seed: everything comes from the checkpoint.
assert eqx.tree_equal(uncut.model, cut.model)
assert eqx.tree_equal(uncut.opt_state, cut.opt_state)
assert cut.model.activation is not None
assert jnp.array_equal(jax.random.key_data(uncut.key), jax.random.key_data(cut.key))

half = jnp.arange(4, dtype=jnp.bfloat16)
train.Checkpoint(folder=FOLDER / "half", half=half, old_key=jax.random.PRNGKey(3)).save(1)
state = train.Checkpoint(folder=FOLDER / "half", half=jnp.zeros(4, jnp.bfloat16), old_key=None)
state.resume()
assert state.half.dtype == jnp.bfloat16
assert jnp.array_equal(state.half, half)
assert isinstance(state.half, jax.Array)

wider = eqx.nn.MLP(2, 1, 9, 2, key=jax.random.key(0))
with pytest.raises(train.TrainError, match="holds shape"):
    train.Checkpoint(folder=FOLDER / "cut", model=wider).resume()

names = list(train.named_arrays(uncut.model))
assert names[0] == "layers.0.weight", names
assert "0.mu.layers.0.weight" in train.named_arrays(uncut.opt_state)
assert "parameters/layers.2.bias" in train.histograms(parameters=uncut.model)
train.check_finite(model=uncut.model, loss=jnp.float32(1))
with pytest.raises(train.NotFinite, match="loss"):
    train.check_finite(loss=jnp.float32("nan"))
print("all well")
