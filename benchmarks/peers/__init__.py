"""Other trackers beside ours: each writes by its own writer, in an environment of its own."""
