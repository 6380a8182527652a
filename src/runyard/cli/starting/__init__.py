"""Commands that start work: programs, jobs, sweeps and lists."""
