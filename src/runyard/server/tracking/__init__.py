"""What happens to a run across subjects: what clients send, how runs end, and deletion."""
