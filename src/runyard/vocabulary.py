"""Words that the server writes and clients compare: states, and what names may hold."""

RUNNING_STATES = ("running", "preempting")
"""States of a run whose program is at work."""
ENDED_RUN_STATES = ("finished", "failed", "crashed", "killed", "preempted")
RUN_STATES = ("pending", *RUNNING_STATES, *ENDED_RUN_STATES)

OPEN_STATES = ("running", "paused")
"""States of a sweep that may still hand out trials."""
CLOSED_STATES = ("finished", "canceled", "failed")
SWEEP_STATES = (*OPEN_STATES, *CLOSED_STATES)

ENDED_STATES = ("finished", "failed", "stopped", "canceled")
"""States of a trial that is over."""
RESULT_STATES = ("finished", "stopped")
"""States of a trial that came to an end of its own: its result counts, and its time tells what
others take."""

ID_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
"""An id of a run, a sweep or a report has eight of these."""
NOT_IN_PROJECTS = "/\\#?%:"
"""Projects and entities are parts of addresses: W&B's rule."""
LONGEST_NAME = 128
"""The longest name of a project, an entity or an artifact's alias."""
