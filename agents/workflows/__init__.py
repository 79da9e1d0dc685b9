"""The loops that campaigns run, one graph per file."""
