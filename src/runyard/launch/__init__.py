"""From a request to running jobs.

Owns the plan (pure data), the job script made from it (pure text), and the backends `slurm` and
`local` with their three calls: submit, poll, cancel. May import `config`, `clusters` and `client`.
"""
