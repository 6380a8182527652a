"""A real Grid Engine of the tests' own."""
