"""What is special about one cluster, as data.

Owns the profiles (YAML files that inherit: site, cluster, group, user) and the choice of the one
for this machine. Of other rooms it uses only the scheduler's name of the cluster.
"""
