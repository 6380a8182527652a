"""The cluster and this project's place on it."""
