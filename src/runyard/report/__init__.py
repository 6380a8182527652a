"""What came of it.

Owns efficiency and what to change, comparisons, tables, plots and exports, all read through
`client`.
"""
