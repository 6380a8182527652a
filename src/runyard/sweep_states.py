"""States of sweeps and trials that the server writes and its clients compare; letters of ids."""

OPEN_STATES = ("running", "paused")
"""Of a sweep: it may still hand out trials."""
ENDED_STATES = ("finished", "failed", "stopped", "canceled")
"""Of a trial: it is over."""

ID_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
"""Of ids that are made up for runs, sweeps and reports: eight of these."""
