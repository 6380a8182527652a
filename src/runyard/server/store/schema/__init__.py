"""The tables, a module a subject; `migrations.py` has them in order."""
