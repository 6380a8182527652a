"""Slurm: its commands, options, states, limits and variables, each table once."""
