# SPDX-License-Identifier: Apache-2.0
"""What a kernel takes, as its source says: names and types of parameters."""

from __future__ import annotations

from dataclasses import dataclass

from ..front_matter import FilePlace

ANY = "any"
"""The element type of `void*` and `char*`: bytes of whatever they are given."""
VECTOR = "vector"
"""The type of a `float4` passed by value, which no argument of a plan can be."""
_SHOWN = 200


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel."""

    name: str
    """Empty where it has none."""
    type: str = ""
    """As written, without qualifiers that a caller need not know: `const float*`."""
    is_pointer: bool | None = None
    """None where only a compiler can tell."""
    dtype: str = ""
    """Of the value, or of the elements it points at; ANY, VECTOR; empty where only a
    compiler can tell."""
    alignment: int = 1
    """Of what it points at: 16 for `float4*`."""
    is_constexpr: bool = False
    """A tl.constexpr of Triton: no argument, but part of what is compiled."""
    has_default: bool = False

    @property
    def text(self) -> str:
        """As one would write it."""
        return " ".join(part for part in (self.type, self.name) if part) or "?"


@dataclass(frozen=True)
class Signature:
    """One kernel of a source."""

    name: str
    """Qualified with its namespaces."""
    place: FilePlace
    parameters: tuple[Parameter, ...] | None
    """None where only a compiler can tell: macros, packs."""
    template: tuple[str, ...] = ()
    """The names of its template parameters."""

    @property
    def runtime(self) -> tuple[Parameter, ...]:
        """The parameters that a launch has to give arguments for."""
        return tuple(each for each in self.parameters or () if not each.is_constexpr)

    @property
    def text(self) -> str:
        """`(int M, const float* x)`, short."""
        said = ", ".join(each.text for each in self.runtime)
        return f"({said})" if len(said) <= _SHOWN else f"({said[:_SHOWN]}…)"
