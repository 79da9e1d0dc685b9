"""Inputs, right answers and what an answer is held against."""
