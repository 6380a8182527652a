"""Runs of a project as lists: filters, orders, columns, groups."""
