"""Owns the methods that suggest points; they see only coordinates and indexes of categories."""
