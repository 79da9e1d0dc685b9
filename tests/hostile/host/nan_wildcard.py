"""Writes NaN, for which `abs(got - expected) > tolerance` is false (A15)."""


def run(y):
    y.fill_(float("nan"))
