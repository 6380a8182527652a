"""Owns the methods that suggest points; they see coordinates and category indexes alone."""
