"""A machine that tries every door: every actor, every operation, every object of a small world."""
