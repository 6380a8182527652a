"""The way to the server.

Owns the typed HTTP client that every other room shares, and finding the server or starting it.
Standard library only, so that a command starts quickly. Imports no other room.
"""
