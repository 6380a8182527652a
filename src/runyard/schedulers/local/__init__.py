"""This machine: jobs are processes in the background, and no queue keeps them waiting."""
