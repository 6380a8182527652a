"""What came of sweeps and runs: the best, comparisons, reports, tables."""
