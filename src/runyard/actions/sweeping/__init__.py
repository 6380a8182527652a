"""Sweeps and lists: planned, made, worked on here; their agents."""
