"""Grid Engine (Sun's, Son of, Open, Univa's, Altair's): every word of it stands in this package."""
