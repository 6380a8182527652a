"""One attempt of a run or a trial: its program, its console, its records and its end."""
