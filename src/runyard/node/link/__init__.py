"""The way to the server: where it is, requests that are repeated, relays, other servers."""
