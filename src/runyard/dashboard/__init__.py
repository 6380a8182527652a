"""The web page.

Owns the static app and its build; it speaks to the server's own API and to nothing else.
Imports no other room.
"""
