"""Files: a job's folder on a node's disk, data copied there, results copied back."""
