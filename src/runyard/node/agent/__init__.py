"""The agent: takes trials of a sweep and runs them, several at a time, until its job ends."""
