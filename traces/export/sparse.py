# SPDX-License-Identifier: Apache-2.0
"""Which of an operator's inputs a CSR tensor of torch's holds. It writes no code and no file."""

from __future__ import annotations

from typing import NamedTuple

from .bundle import Bundle

_INDPTR, _INDICES, _VALUES = "indptr", "indices", "values"
"""As kernelbench/sparse.py names them."""


class Csr(NamedTuple):
    """The inputs that stand in one sparse tensor: the first ones, in this order."""

    indices: int
    """How many index tensors: 1 where the columns are not asked for, else 2."""
    has_values: bool

    @property
    def held(self) -> int:
        """How many inputs a CSR tensor takes the place of."""
        return self.indices + self.has_values

    @property
    def taken(self) -> str:
        """The inputs from a pattern and its matrix, as Python text."""
        parts = ["pattern.indptr", "pattern.indices"][: self.indices]
        parts += ["values"] * self.has_values
        return ", ".join(parts) + "," * (len(parts) == 1)


def find_csr(bundle: Bundle) -> Csr | None:
    """What a CSR tensor holds of the inputs; None where the operator is not one of a pattern."""
    names = [t.name for t in bundle.inputs if t.is_index]
    if names not in ([_INDPTR], [_INDPTR, _INDICES]):
        return None
    if [t.name for t in bundle.inputs[: len(names)]] != names:
        return None
    after = bundle.inputs[len(names) : len(names) + 1]
    is_held = [(t.name, t.shape) for t in after] == [(_VALUES, ("nnz",))]
    return Csr(len(names), is_held)
