"""What the user asked for, as one typed request.

Owns `runyard.yaml`, sweep files and flags: reads them, checks them, and names file and line in
every error. May import `clusters` and `search`. Nothing here starts, submits or stores anything.
"""
