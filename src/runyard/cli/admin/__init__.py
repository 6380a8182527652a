"""Commands for the server, its people, the project and the cluster."""
