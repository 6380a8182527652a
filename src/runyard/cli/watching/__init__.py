"""Commands that show, report and end what is at work, and what came of it."""
