"""A Slurm whose nodes are nodes of their own, and what becomes of runyard when they fail."""
