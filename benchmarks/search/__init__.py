"""The search against W&B's open engine, and what early stopping saves."""
