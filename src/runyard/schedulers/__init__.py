"""What runs jobs: a seam with one implementation for each scheduler.

Owns every word of a scheduler's: its commands, options, variables, states and limits. `slurm/` is
the only place that knows Slurm's. May import `config`, `clusters` and the ground floor; `inside`,
which is what a job knows of itself, imports the standard library alone and is for every room.
"""
