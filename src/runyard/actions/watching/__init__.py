"""How things stand: status, jobs, logs, use of machines."""
