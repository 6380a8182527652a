"""Slurm's jobs as the server remembers them, their logs, and what kinds of experiments need."""
