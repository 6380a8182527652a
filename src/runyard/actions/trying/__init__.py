"""Before a launch: checks of the program, small tries, what it needs, how long it will take."""
