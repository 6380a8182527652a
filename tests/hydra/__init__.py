"""The Hydra launcher of `plugins/hydra`, with Hydra in an environment of its own."""
