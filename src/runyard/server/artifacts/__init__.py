"""Artifacts: versions, names, contents, and who may see them."""
