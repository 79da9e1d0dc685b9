# SPDX-License-Identifier: Apache-2.0
"""Pieces of the generated operator module: parameter lists, calls and shapes as Python text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from .axes import Derivation, parse_term, plan_axes
from .bundle import Bundle
from .sparse import find_csr

LINE = 100


@dataclass(frozen=True)
class Code:
    """What the template of the operator module asks for; every text is a valid fragment."""

    bundle: Bundle
    operator: str

    @property
    def keywords(self) -> tuple[str, ...]:
        """Axes and attributes that the caller names."""
        return plan_axes(self.bundle).keywords

    @property
    def shaping(self) -> frozenset[str]:
        """The axes that stand in some shape; the others are attributes."""
        terms = [term for tensor in self.bundle.tensors for term in tensor.shape]
        return frozenset(axis for term in terms for axis in parse_term(term).axes)

    @property
    def inputs(self) -> str:
        """The inputs as a tuple."""
        return _tuple([t.name for t in self.bundle.inputs])

    @property
    def outputs(self) -> str:
        """The outputs as a tuple."""
        return _tuple([t.name for t in self.bundle.outputs])

    @property
    def axes(self) -> str:
        """The axes as a tuple, in the order of the kernel's parameters."""
        return _tuple(list(self.bundle.axes))

    @property
    def unpacked(self) -> str:
        """The same as a target, with an underscore before axes that no output has."""
        terms = [term for tensor in self.bundle.outputs for term in tensor.shape]
        used = {axis for term in terms for axis in parse_term(term).axes}
        return _tuple([axis if axis in used else f"_{axis}" for axis in self.bundle.axes])

    @property
    def returns(self) -> str:
        """The type that a call gives."""
        count = len(self.bundle.outputs)
        return "Tensor" if count == 1 else f"tuple[{', '.join(['Tensor'] * count)}]"

    @property
    def returned(self) -> str:
        """What the functional form returns."""
        return ", ".join(t.name for t in self.bundle.outputs)

    def define(self, name: str, *, returns: str = "", outputs: bool = False) -> str:
        """The head of an inner function of the inputs, the outputs if asked, and the keywords."""
        tensors = self.bundle.tensors if outputs else self.bundle.inputs
        parts = [f"{t.name}: Tensor" for t in tensors]
        if self.keywords:
            parts += ["*", *(f"{axis}: int" for axis in self.keywords)]
        return _wrap_parts(f"def {name}", parts, f" -> {returns or self.returns}:")

    def define_public(self, form: str) -> str:
        """The head of the function that users call, of each input or with a CSR tensor first.

        Args:
            form: `flat`, `sparse`, or `both` for the one body of the two.
        """
        names = [t.name for t in self.bundle.inputs]
        parts = [f"{name}: Tensor" for name in names]
        if form == "sparse":
            held = find_csr(self.bundle)
            parts = ["_A: Tensor", "/", *parts[held.held if held else 0 :]]
        elif form == "both":
            parts[1:] = [f"{part} | None = None" for part in parts[1:]]
        parts += ["*", *(f"{axis}: int" for axis in self.keywords)]
        parts += [f"out: {self.returns} | None = None"]
        return _wrap_parts(f"def {self.operator}", parts, f" -> {self.returns}:")

    @property
    def wants_gradient(self) -> str:
        """Whether an input asks for a gradient, as an expression."""
        names = [t.name for t in self.bundle.inputs if not t.is_index]
        return " or ".join(f"{name}.requires_grad" for name in names)

    @property
    def beside_csr(self) -> str:
        """What a call with a CSR tensor has behind it."""
        held = find_csr(self.bundle)
        names = [t.name for t in self.bundle.inputs[held.held if held else 1 :]]
        return "".join(f", {name}" for name in names)

    def call(self, name: str, *more: str) -> str:
        """A call of an inner function with the parameters at hand, then `more`."""
        parts = [t.name for t in self.bundle.inputs] + list(more)
        return f"{name}({', '.join(parts + [f'{axis}={axis}' for axis in self.keywords])})"

    def call_with_outputs(self, name: str) -> str:
        """The same with the outputs by their names."""
        return self.call(name, *(t.name for t in self.bundle.outputs))


def derivation(step: Derivation) -> str:
    """`indptr.shape[0] - 1`."""
    value = f"{step.tensor}.shape[{step.dimension}]"
    value += "".join(f" - {axis}" for axis in step.others)
    value += f" - {step.constant}" if step.constant else ""
    return value if step.times == 1 else f"({value}) // {step.times}"


def extent(shape: Sequence[str]) -> str:
    """A shape as a tuple expression of the axes: `(M + 1,)`."""
    terms = []
    for text in shape:
        term = parse_term(text)
        constant = [str(term.constant)] if term.constant or not term.axes else []
        counted = Counter(term.axes).items()
        named = [axis if times == 1 else f"{times} * {axis}" for axis, times in counted]
        terms.append(" + ".join([*named, *constant]))
    return _tuple(terms)


def _tuple(parts: Sequence[str]) -> str:
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _wrap_parts(head: str, parts: Sequence[str], tail: str) -> str:
    line = f"{head}({', '.join(parts)}){tail}"
    if len(line) <= LINE:
        return line
    return f"{head}(\n" + "".join(f"    {part},\n" for part in parts) + f"){tail}"
