"""What is kept on disk: SQLite behind one writer thread, and the files of runs."""
