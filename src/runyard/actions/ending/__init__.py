"""Ending what is at work: sweeps, trials and jobs."""
