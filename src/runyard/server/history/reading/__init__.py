"""Ways to read what runs logged: rows, curves, keys."""
