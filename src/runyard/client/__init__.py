"""The way to the server.

Owns the typed HTTP client that every other room shares, finding the server or starting it, keys,
and pushing runs to other servers.
Standard library only, so that a command starts quickly. Imports no other room.
"""
