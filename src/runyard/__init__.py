"""runyard takes an experiment that works on a laptop to a Slurm cluster and back."""

__version__ = "0.1.0"
