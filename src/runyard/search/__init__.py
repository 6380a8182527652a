"""Which trial next, and which to stop.

Owns the search space, the samplers, early stopping and grid arithmetic. Pure: no files, no sockets,
no clock. Imports no other room.
"""
