"""Users, teams, keys, sessions, and what each may do."""
