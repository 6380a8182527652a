"""What is peculiar to one cluster, as data.

Owns the profiles (YAML that inherits: site, cluster, group, user) and the probing of a cluster
nobody has described yet. Imports no other room.
"""
