"""Timing: sides, clocks, statistics and the roofline."""
