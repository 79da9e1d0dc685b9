"""What a mutant differs in from the right kernel it is made of: the table of operators.

An operator finds every place of a source that it could change, and draws how. What it makes need
not compile, and need not be wrong: the compiler and the comparison of machine codes tell.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kernelwright.kernelbench.languages import CPP, CUDA, TRITON, Language

from . import sums, values, walks
from .tokens import Code, Edit

Find = Callable[[Code, random.Random, tuple[str, ...]], Iterator[Edit]]
"""The edits of a source; the names are the axes of its problem."""

_ALL = (CPP, CUDA, TRITON)
_C = (CPP, CUDA)


@dataclass(frozen=True)
class Operator:
    """One kind of mistake."""

    name: str
    what: str
    find: Find
    languages: tuple[Language, ...] = _ALL


OPERATORS = (
    Operator("bound less", "a bound is one less", walks.lessen_bounds),
    Operator("bound more", "a bound is one more", walks.raise_bounds),
    Operator("comparison", "`<` and `<=`, `>` and `>=` change places", walks.swap_comparisons),
    Operator("begins late", "a loop begins one later", walks.begin_late),
    Operator("step", "a loop takes longer steps", walks.lengthen_steps),
    Operator("tail at a residue", "a loop ends one early at one remainder", walks.end_at_residue),
    Operator("tail beyond a size", "a loop ends one early beyond a size", walks.end_beyond),
    Operator("stops at a size", "a loop goes no further than a size", walks.stop_at),
    Operator("skipped iterations", "iterations of one remainder are skipped", walks.skip, _C),
    Operator(
        "axis at a residue", "an axis is one short at a remainder", walks.shorten_axis, (CPP,)
    ),
    Operator(
        "axis at a residue beyond a size",
        "an axis is one short at a remainder modulo 8 of large sizes",
        walks.shorten_long_axis,
        (CPP,),
    ),
    Operator("statement", "a statement is left out", sums.drop_statements),
    Operator("term", "an operand is left out", sums.drop_terms),
    Operator("arithmetic", "an operator becomes another", sums.change_operators),
    Operator("lost sum", "`+=` becomes `=`", sums.lose_sums),
    Operator("stale accumulator", "an accumulator keeps its last value", sums.keep_values, (CPP,)),
    Operator("missing zero", "memory is not set before it is used", sums.leave_unset),
    Operator("initial maximum", "a maximum begins with a number", sums.raise_initial),
    Operator("synchronisation", "a barrier, an atomic or a reduction is missing", sums.drop_sync),
    Operator("condition", "a condition is always true, or never, or turned", sums.fix_conditions),
    Operator("mask", "a mask is missing", sums.drop_masks, (TRITON,)),
    Operator("operands", "two names of an index change places", values.swap_indices),
    Operator("stride", "an axis is taken for another", values.mistake_axes),
    Operator("constant", "a constant is one or a hundredth off", values.change_constants),
    Operator("16-bit integer", "an integer is narrowed to 16 bits", values.narrow_to_16),
    Operator("32-bit integer", "a 64-bit integer is narrowed to 32", values.narrow_to_32),
    Operator("float16", "a number is kept in half precision", values.halve, (CPP, TRITON)),
    Operator("bfloat16", "a number loses the lower half of its bits", values.cut_bits, _C),
    Operator("float for double", "a double is kept in float32", values.narrow_doubles),
)
