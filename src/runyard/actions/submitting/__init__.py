"""Agents of a sweep as jobs of the cluster: planned, shown, agreed to, and sent."""
