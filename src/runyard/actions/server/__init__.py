"""The server: how it is reached, and where it is a job of Slurm's."""
