"""The record of a run: its place, state, name, files, alerts; and saved views of runs."""
