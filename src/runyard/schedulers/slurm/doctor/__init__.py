"""What `runyard doctor` asks of Slurm and of a compute node, and a profile's draft made from it."""
