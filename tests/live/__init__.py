"""The second ring: the unmodified wandb client, real processes, a real server."""
