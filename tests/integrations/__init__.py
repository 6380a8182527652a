"""Frameworks that log to wandb by themselves: a tiny real training with each."""
