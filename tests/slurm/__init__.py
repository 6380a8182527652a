"""A disposable real Slurm, for the tests and for people: see `cluster.SlurmCluster`."""
