"""What the page asks: columns instead of rows, what changed instead of everything."""
