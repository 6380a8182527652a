"""What is peculiar to one cluster, as data.

Owns the profiles (YAML that inherits: site, cluster, group, user) and which of them is this
machine's. Of other rooms it knows the scheduler's name of the cluster alone.
"""
