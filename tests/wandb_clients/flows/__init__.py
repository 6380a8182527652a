"""Programs as researchers write them, run by each version of the client."""
