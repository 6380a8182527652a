"""What is asked of Slurm's jobs on the page, which cannot ask Slurm itself."""

TABLES = """
ALTER TABLE jobs ADD COLUMN wish TEXT;   -- cancel; NULL: nothing is asked of it
"""
