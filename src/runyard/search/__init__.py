"""Which trial comes next, and which one to stop.

Owns the search space, the samplers, early stopping and grid arithmetic. Pure: no files, no sockets,
no clock; `worker` is the process around an engine. Imports no other room.
"""
