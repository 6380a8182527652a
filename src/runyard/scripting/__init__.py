"""What `import runyard` gives to a Python program: submit, map, sweep, and their handles.

Owns the names that people type in a script or a notebook, how a function and what it returns travel
to a job and back, and the waiting for it. Everything else is done by an action.
"""
