"""`hydra/launcher=runyard`: the jobs of a multirun as trials of runyard."""
