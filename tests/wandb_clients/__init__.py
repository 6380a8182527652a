"""The unmodified wandb client, in several versions, against this server."""
