"""Plots without a plotting library: shapes, scales, and two ways to write them."""
