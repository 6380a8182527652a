"""States of sweeps and trials that the server writes and clients compare; characters of ids."""

OPEN_STATES = ("running", "paused")
"""States of a sweep that may still hand out trials."""
ENDED_STATES = ("finished", "failed", "stopped", "canceled")
"""States of a trial that is over."""

ID_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
"""An id of a run, a sweep or a report has eight of these."""
