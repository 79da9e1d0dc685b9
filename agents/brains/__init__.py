"""The brains that fill the roles of Coder and Judge, side by side."""
