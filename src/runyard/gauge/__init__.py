"""How much, how many, how long.

Owns running a program aside to measure it, what that means for a job (memory, CPUs, time, how many
share a GPU), and estimates before a submission. What is measured is kept by the server.
"""
