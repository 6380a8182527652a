"""How much, how many, how long.

Owns measuring a program outside of any sweep, what the figures mean for a job (memory, CPUs, time,
how many share a GPU), and estimates before a submission. The server stores the measurements.
"""
