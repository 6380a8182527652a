"""What a user's program may import.

Owns checkpoints, time left, progress, ranks and parameters for the program's side. Standard library
only, and it works alone, as a plain local run, when nothing of runyard is around it.
"""
