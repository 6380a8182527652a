"""From a request to running jobs.

Owns the plan (pure data), the job script made from it (pure text), the copy of the code, the
environment around a program, and what becomes of jobs: sent, held back, watched. The scheduler's
own words are in `schedulers`. May import `schedulers`, `config`, `clusters` and `client`.
"""
