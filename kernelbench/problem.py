# SPDX-License-Identifier: Apache-2.0
"""What a Problem and a Workload are. How one operator is computed stands in `problems/`.

A Problem is frozen data (names, axes, tensors, precision, source) plus a few pure functions of
numpy arrays: how inputs are made, what the right answer is in float64, what it costs, and which
library calls it is held against. It knows no sandbox, no clock and no torch at import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, field_validator

from .codecs import encode_by_streams
from .dtypes import DTYPES, FLOAT32, DType, dtype_of, in_c
from .manner import MOST_INSTANCES, USUAL, Manner, Timing
from .precision import STRICT_FP32, Precision
from .sizes import Range
from .targets import target_of
from .terms import value_of
from .tried import Tried

Arrays = dict[str, np.ndarray]
Axes = dict[str, int]
Pair = tuple[np.ndarray, np.ndarray]
"""Two inputs, or what an answer is and its scale (Expected)."""
Inputs = tuple[np.ndarray, ...]
"""Several inputs, in their order."""


class Family(StrEnum):
    """Distributions that inputs are drawn from (verification.md §3.4)."""

    NORMAL = "normal"
    UNIFORM = "uniform"
    LAPLACE = "laplace"
    LOGNORMAL = "lognormal"
    EXPONENTIAL = "exponential"
    OUTLIERS = "outliers"
    """Normal with 1 % of the elements a hundred times as large."""
    ALTERNATING = "alternating"
    """Signs alternate: sums cancel."""
    CONSTANT = "constant"
    SORTED = "sorted"
    DENORMAL = "denormal"
    """Denormal logits for a softmax; elsewhere some rows of one factor, whose answers must not be
    flushed to zero."""
    LARGE = "large"
    """Large magnitudes that stay finite in the declared arithmetic; large logits for a softmax. Of
    whole numbers all are near the type's largest, with one sign: sums are as large as can be."""
    NONFINITE = "nonfinite"
    """Normal with a few NaN and infinities where the definition says what becomes of them."""
    EXACT = "exact"
    """Integers of {-1, 0, 1}: sums are exact in float32, so the answer must match bit for bit."""
    PROBE = "probe"
    """At most four non-zeros with full 24-bit mantissas per reduction: shows a silent downcast."""


PLAIN = (
    Family.NORMAL,
    Family.UNIFORM,
    Family.LAPLACE,
    Family.LOGNORMAL,
    Family.EXPONENTIAL,
    Family.OUTLIERS,
    Family.ALTERNATING,
    Family.CONSTANT,
    Family.SORTED,
)
"""Families of every problem that does not leave one out."""


WHOLE = (Family.DENORMAL, Family.NONFINITE, Family.PROBE)
"""Families that say nothing of whole numbers."""


class Tensor(BaseModel):
    """One typed input or output."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    dtype: str
    """The name of one of DTYPES; what the referee judges takes those of TENSORS alone."""
    shape: tuple[str, ...]
    """Each an axis name, a number or a formula such as `M+1` (terms.py)."""
    meaning: str = ""
    is_index: bool = False
    """Part of the structure (indptr, indices) and not of the values."""

    @field_validator("dtype")
    @classmethod
    def _is_known(cls, name: str) -> str:
        if name not in DTYPES:
            raise ValueError(f"is none of {', '.join(DTYPES)}")
        return name

    def extent(self, axes: Mapping[str, int]) -> tuple[int, ...]:
        """The shape for concrete axis values."""
        return tuple(value_of(term, axes) for term in self.shape)


FLUSHED = FLOAT32.smallest_normal
"""The smallest normal float32. Atomic sums of a GPU on global memory take what is smaller for zero,
their operands and their results (PTX ISA, atom: `.f32` flushes subnormals), and so do libraries
that are built on them: on a GPU each term of any sum may be off by this much."""


class Workload(BaseModel):
    """One concrete instance of a Problem: axis values and how its structure is made."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: int = 1
    name: str
    kind: str
    """`tiny`, `realistic` or `adversarial`; `matrix` for a user's file."""
    axes: Axes = Field(default_factory=dict)
    """Axis values; for a matrix file, those that the file does not give (N)."""
    generator: dict[str, float | int | str | bool] = Field(default_factory=dict)
    """For sparse problems: how the pattern is drawn, e.g. {law: degree, cv: 3.6, p_local: .2}."""
    matrix: str = ""
    """Path of a .mtx, .mtx.gz or .npz file."""
    matrix_sha256: str = ""
    seed: int = 0
    """Seed of the structure; never of the values."""
    note: str = ""
    timing: Timing = Timing.USUAL
    instances: int = Field(default=1, ge=1, le=MOST_INSTANCES)
    """So many of its calls are made at a time (manner.Manner)."""
    parts: tuple[Part, ...] = ()
    """Of several that a kernel is to be fast on together: these, the weightiest first. Axes and
    pattern are theirs then."""

    def called_in(self, manner: Manner) -> Workload:
        """This, or each of its parts, timed in a manner: its name and note say so."""
        if manner == USUAL:
            return self
        parts = tuple(
            part.model_copy(update={"workload": part.workload.called_in(manner)})
            for part in self.parts
        )
        note = ", ".join(filter(None, (self.note, manner.words)))
        changed = {"name": f"{self.name}{manner.suffix}", "note": note, "parts": parts}
        return self.model_copy(update={**changed, **manner._asdict()})

    @property
    def manner(self) -> Manner:
        """How its calls are timed."""
        return Manner(self.timing, self.instances)

    @property
    def first(self) -> Workload:
        """Itself, or the weightiest of several: what stands for them where only one can."""
        return self.parts[0].workload if self.parts else self


class Part(BaseModel):
    """One of several workloads, and how much it counts beside the others."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    workload: Workload
    weight: float = Field(default=1.0, gt=0)


@dataclass(frozen=True)
class Structure:
    """The part of a workload that stays while values change: axis values and index arrays."""

    axes: Axes
    arrays: Arrays = field(default_factory=dict)
    cache: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """Derived constants an oracle may keep (row numbers, a scipy pattern)."""
    follows: frozenset[str] = field(default=frozenset(), compare=False)
    """Axes that follow from its pattern, beside the entries."""
    is_telling: bool = field(default=False, compare=False)
    """Of a hidden shape: what is wrong along one axis shows in several places of each other one."""
    is_middling: bool = field(default=False, compare=False)
    """Of a hidden shape: no axis is short, and none long."""


@dataclass(frozen=True)
class Expected:
    """The right answer for one output, with what its error may be held against.

    Gate G1 is |y − value| ≤ Precision.limit(|value|, scale, terms), elementwise.
    """

    value: np.ndarray
    """float64, the output's shape; NaN and infinities where the output must have them."""
    scale: np.ndarray
    """float64, broadcastable to value: the sum of |terms| (|A||B| for a product)."""
    terms: np.ndarray | float = 1.0
    """Length of the reduction, broadcastable to value."""
    is_exact: bool = False
    """Whether the output must match bit for bit (max, copies, exact-arithmetic trials)."""
    is_code: bool = False
    """Of an output of whole numbers: whether it is what real numbers are rounded to, as a quantiser
    does. `value` is what they are before: either neighbour will do where float32 sees a tie."""
    streams: np.ndarray | None = None
    """Of an output of floats that is rounded at random, up or down by chance: of each row a number
    that its random bits follow from (verifier/truth/random_rounding.py). `value` is what it is
    before, exactly."""

    def is_held_exact(self, family: Family, dtype: DType) -> bool:
        """Whether an output of this type must match bit for bit."""
        is_whole = family is Family.EXACT or dtype.is_integral
        return self.is_exact or (is_whole and not self.is_code)

    def hold(self, precision: Precision) -> Precision:
        """What its elements are held to, where others are held to `precision`."""
        return precision.rounded_to_whole() if self.is_code else precision

    def store_as(self, dtype: np.dtype) -> np.ndarray:
        """The right answer as an output of this type holds it; of one that is rounded at random one
        of those that are right."""
        if self.streams is not None:
            return encode_by_streams(self.value, DTYPES[dtype.name], self.streams)
        value = np.rint(self.value) if self.is_code else np.asarray(self.value)
        with np.errstate(all="ignore"):
            return value.astype(dtype)


@dataclass(frozen=True)
class MeasuringOracle:
    """An oracle that measures its scales: its answers alone take a sixth of the time, or less."""

    measure: Callable[[Structure, Arrays], dict[str, Expected]]
    answer: Callable[[Structure, Arrays], Arrays]
    """The same values, without scales."""

    def __call__(self, structure: Structure, inputs: Arrays) -> dict[str, Expected]:
        """See Problem.oracle."""
        return self.measure(structure, inputs)


class BaselineCall(NamedTuple):
    """What a baseline works on: views of memory it does not own."""

    axes: Axes
    inputs: Arrays
    outputs: Arrays


Prepared = Callable[[], object]
"""Computes the outputs of the call it was prepared for from that call's inputs as they are now."""


class Handle(Protocol):
    """What a prepared baseline makes of a sparse matrix, values included, before it is timed."""

    def refresh(self) -> None:
        """Makes it of the values that are there now; not timed."""

    def __call__(self) -> None: ...


@dataclass(frozen=True)
class Baseline:
    """A library's implementation that a candidate is held against.

    `prepare` gets views whose contents change between calls while addresses, shapes and structure
    stay; everything that a careful user would do once (build the CSR object, choose `out=`,
    compile) is done there and is not timed.
    """

    name: str
    """`torch eager`, `torch.compile`, `scipy`."""
    prepare: Callable[[BaselineCall], Prepared | Handle]
    requires: str = "torch"
    """The import it needs; empty: `prepare` finds out itself, and raises ImportError."""
    is_prepared: bool = False
    """Whether it prepares a sparse matrix, values included, outside of the timed call: right where
    one matrix is multiplied many times. Its `prepare` gives a Handle."""

    writes_inputs: bool = False
    """Whether it writes what it was given, if only what stands there already: the others get
    memory that cannot be written."""

    def runs_on(self, device: str) -> bool:
        """Whether it can run on a device of torch's naming; "" are the CPUs."""
        if self.requires == "cupy":
            return device.startswith("cuda")
        return self.requires == "torch" or not device


def no_twins(_structure: Structure, _rng: np.random.Generator) -> Iterator[Structure]:
    """For problems whose structure is its sizes."""
    return iter(())


def no_bulk(_structure: Structure, _rng: np.random.Generator) -> Iterator[Structure]:
    """For problems with one long axis at most."""
    return iter(())


class Variations(Protocol):
    """Draws the hidden shapes of a problem."""

    def __call__(
        self, structure: Structure, rng: np.random.Generator, tried: Tried | None = None, /
    ) -> Iterator[Structure]:
        """Shapes without end, beginning with those that were not tried yet.

        Args:
            structure: the workload's.
            tried: by earlier evaluations; it is told what this one takes.
        """


@dataclass(frozen=True)
class Problem:
    """An operator: its definition, its inputs and outputs, its truth and its cost."""

    name: str
    title: str
    definition: str
    """The mathematics, in one or two lines of plain text."""
    axes: dict[str, str]
    """Axis name → meaning; the C parameters of type int, in this order."""
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    source: str
    """The paper or page it was taken from."""
    workloads: tuple[Workload, ...]
    structure: Callable[[Workload], Structure]
    """Makes axis values and index arrays; reads the matrix file where the workload names one."""
    values: Callable[[Structure, Family, np.random.Generator], Arrays]
    """Draws the float inputs (all inputs that are not `is_index`), float32, C-contiguous."""
    oracle: Callable[[Structure, Arrays], dict[str, Expected]]
    """float64 truth per output name. `Arrays` holds the float inputs."""
    flops: Callable[[Axes], float]
    bytes_moved: Callable[[Axes], float]
    """Compulsory bytes: each input read once, each output written once."""
    baselines: tuple[Baseline, ...]
    variations: Variations
    """Endless small hidden shapes; the first, and some later ones, have a size beyond 16 bits."""
    ranges: Mapping[str, Range] = field(default_factory=dict)
    """Of each axis, how long hidden shapes may be along it."""
    bulk: Callable[[Structure, np.random.Generator], Iterator[Structure]] = no_bulk
    """Endless hidden shapes of some MiB, in which two axes are long at once."""
    families: tuple[Family, ...] = PLAIN
    """The families that are legal for it; EXACT and PROBE only where they mean something."""
    precision: Precision = STRICT_FP32
    accuracy: str = ""
    """What n and s of the error limit are, where an honest kernel may miss it, and what becomes of
    NaN and infinities: for whoever writes a candidate."""
    twins: Callable[[Structure, np.random.Generator], Iterator[Structure]] = no_twins
    """Other structures of exactly the same sizes, a near one first; where there are index arrays.
    May end, or give none, where no other has these sizes."""
    is_row_wise: bool = False
    """Whether no row along the axis M says anything of another: the answers of some rows follow
    from what the inputs hold for them (kernelbench/rows.py)."""
    version: int | str = 1
    """Counted of ours; of a user's file its hash."""
    text: str = ""
    """The user's file it is read from, whose functions run in a jail alone; empty: one of ours."""
    skeleton: Mapping[str, Any] = field(default_factory=dict)
    """Of a user's: what a naive candidate computes, as in a file of `skeletons/`."""
    backward_of: str = ""
    """The problem it is the derivative of. Its inputs are that problem's outputs under their names
    and the gradients of these, `d` and the name; its outputs are the gradients of the inputs."""
    constants: tuple[str, ...] = ()
    """Inputs that hold the same on every draw, as a mask; they may be infinite."""
    bound: tuple[str, ...] = ()
    """Inputs whose numbers are right only as they are drawn together, as offsets of segments."""
    codes: Mapping[str, str] = field(default_factory=dict)
    """Tensors of bytes that hold codes, each with its codec's name (coded.py)."""
    tags: tuple[str, ...] = ()
    headline: str = ""
    """What the paper reports, with its conditions."""
    requires: str = ""
    base: str = ""
    """The problem whose precision it changes (policies.py); empty: it is no such one."""
    policies: tuple[str, ...] = ()
    """In which it can be asked for."""

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Inputs, then outputs: the order of the C parameters after the axes."""
        return self.inputs + self.outputs

    def answer(self, structure: Structure, inputs: Arrays) -> Arrays:
        """The oracle's values alone, float64, for who asks what they are and not how near a
        kernel's must be."""
        if isinstance(self.oracle, MeasuringOracle):
            return self.oracle.answer(structure, inputs)
        return {name: each.value for name, each in self.oracle(structure, inputs).items()}

    def workload(self, name: str) -> Workload:
        """The workload `name`; UnknownNameError with the nearest names."""
        from ..errors import UnknownNameError

        for workload in self.workloads:
            if workload.name == name:
                return workload
        raise UnknownNameError.for_name(
            f"workload of {self.name}", name, [w.name for w in self.workloads]
        )

    def precision_of(self, output: str) -> Precision:
        """What one output is held to: it is rounded to its type."""
        dtype = next(t.dtype for t in self.outputs if t.name == output)
        return self.precision.rounded_to(dtype_of(dtype))

    def for_target(self, target: str) -> Problem:
        """The problem as it is held on a target: what the hardware does with denormals differs."""
        if not target_of(target).flushes_denormals:
            return self
        return replace(self, precision=self.precision.model_copy(update={"underflow": FLUSHED}))

    @property
    def default_workload(self) -> Workload:
        """The realistic workload that a campaign uses unless told otherwise."""
        return next(w for w in self.workloads if w.kind == "realistic")


def c_parameters(problem: Problem, word: Callable[[DType], str] = in_c) -> list[str]:
    """The parameters of the kernel's entry point: axes as `int`, inputs const, then outputs.

    Args:
        word: what the language calls an element type.
    """
    inputs = [f"const {word(dtype_of(t.dtype))}* {t.name}" for t in problem.inputs]
    outputs = [f"{word(dtype_of(t.dtype))}* {t.name}" for t in problem.outputs]
    return [f"int {axis}" for axis in problem.axes] + inputs + outputs
