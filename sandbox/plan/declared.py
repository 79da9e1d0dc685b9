# SPDX-License-Identifier: Apache-2.0
"""A launch plan as a candidate declares it: symbolic, for every workload."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..front_matter import FilePlace, FrontMatter, Path
from .dialects import Dialect
from .expressions import Expression
from .faults import PlanFaultKind, PlanRefusedError
from .model import Constant
from .signature import Signature


@dataclass(frozen=True)
class Value:
    """An argument by name or expression: an axis, a knob, a tensor, a scratch buffer, a number."""

    expression: Expression

    @property
    def text(self) -> str:
        """As written."""
        return self.expression.text


@dataclass(frozen=True)
class Float:
    """A floating-point literal, `{f32 = 1e-5}`."""

    value: float
    bits: int
    """32 or 64."""

    @property
    def text(self) -> str:
        """As written."""
        return f"{{f{self.bits} = {self.value!r}}}"


@dataclass(frozen=True)
class BufferPart:
    """A buffer from some element on, `{buffer = "partial", offset = "M * N"}`."""

    buffer: str
    offset: Expression

    @property
    def text(self) -> str:
        """As one would say it."""
        return f"{self.buffer} + {self.offset.text}"


DeclaredArgument = Value | Float | BufferPart


@dataclass(frozen=True)
class DeclaredLaunch:
    """One `[[launch]]`: a kernel, or a buffer to set to zero."""

    index: int
    """Its place among the plan's launches."""
    kernel: str = ""
    zero: str = ""
    """The buffer to set to zero bytes, where it is not a kernel."""
    when: Expression | None = None
    grid: tuple[Expression, ...] = ()
    block: tuple[Expression, ...] = ()
    cluster: tuple[Expression, ...] = ()
    shared_bytes: Expression | None = None
    arguments: tuple[DeclaredArgument, ...] = ()
    constants: dict[str, Expression | Constant] = field(default_factory=dict)
    options: dict[str, Expression] = field(default_factory=dict)
    """Triton's num_warps, num_stages, num_ctas and maxnreg, as far as given."""


@dataclass(frozen=True)
class DeclaredScratch:
    """One work buffer."""

    name: str
    dtype: str
    shape: tuple[Expression, ...]


@dataclass(frozen=True)
class Plan:
    """What the front matter of a device-only candidate says."""

    dialect: Dialect
    launches: tuple[DeclaredLaunch, ...]
    """Empty for a file whose own host code launches its kernels."""
    knobs: dict[str, int] = field(default_factory=dict)
    scratch: tuple[DeclaredScratch, ...] = ()
    signatures: dict[str, tuple[Signature, ...]] = field(default_factory=dict)
    """What each kernel takes, by the name that it is launched by: several where it is overloaded,
    none where only a compiler can tell."""
    facts: dict[str, Any] = field(default_factory=dict)
    """The whole front matter as read: `recipe` and the rest."""
    matter: FrontMatter = field(default_factory=FrontMatter, repr=False)

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of its kernels in the order of their first launch, each once."""
        return tuple(dict.fromkeys(each.kernel for each in self.launches if each.kernel))

    def place(self, *path: str | int) -> FilePlace:
        """Where a value of the front matter stands in the file."""
        return self.matter.place(path)

    def refusal_error(
        self, reason: str, path: Path, kind: PlanFaultKind = PlanFaultKind.MISTAKE
    ) -> PlanRefusedError:
        """The error for a value of the front matter."""
        return PlanRefusedError(reason, self.matter.place(path), kind)
