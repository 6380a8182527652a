"""Storage: SQLite behind one writer thread, its schema and migrations, files that arrive."""
