"""runyard's own API: what the command line, agents and the page ask."""
