"""What came of it.

Owns efficiency, estimates, tables, plots and exports, all read through `client`.
"""
