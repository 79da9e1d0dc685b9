"""Holds workflows against each other at equal spend: what is run, how it went, what it shows."""
