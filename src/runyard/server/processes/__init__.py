"""What wrote to a run: attempts that runyard started, clients that spoke to us, their consoles."""
