"""Checks of an answer and of how it came about."""
