"""From a request to running jobs.

Owns the plan (pure data), the job script made from it (pure text), the copy of the code, the
environment around a program, and all that is said to Slurm: submit, poll, cancel. May import
`config`, `clusters` and `client`.
"""
