"""What becomes of trials and sweeps: pure functions from what was heard to what is next."""
