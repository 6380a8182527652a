"""What runs logged: numbered rows, stored in columns, moved in slices."""
