# SPDX-License-Identifier: Apache-2.0
"""A Problem of what its file declares and of the functions beside it.

    def oracle(x): …                    the answers in float64 (problem.Expected); plain arrays
                                        are held against what conditioning.py measures
    def values(family, rng, M, N): …    the float inputs; without it each is of the family

They are given what their parameters name: inputs (float32, also of codes), axes, `structure`,
`family`, `rng`. What several problems share is in dense.py, sparse.py and families.py;
library_calls.py has the baselines.
"""

from __future__ import annotations

import inspect
import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from ..errors import UsageError
from . import dense, sparse
from .coded import decode_all, draw_codes, encode_answer
from .conditioning import Oracle, answer_exactly, count_terms, measure_conditions
from .declaration import Declaration, read_declaration
from .dtypes import DTYPES, FLOAT32, INT32, dtype_of
from .families import blemish, draw
from .following import Drawn, follow_bulk, follow_variations, follow_workload
from .library_calls import NARROW, SHARED, baselines_of
from .policies import HALVES, Policy, declare_in, name_in
from .precision import ASKED, precision_of
from .problem import (
    Arrays,
    Axes,
    Baseline,
    BaselineCall,
    Expected,
    Family,
    MeasuringOracle,
    Prepared,
    Problem,
    Structure,
    Tensor,
    no_bulk,
    no_twins,
)
from .rooms import room_of
from .sizes import HIDDEN_ELEMENTS, HIDDEN_HELD, HIDDEN_INPUTS, HIDDEN_OUTPUTS, Range
from .stored import store, widen
from .terms import names_in, value_of
from .tried import Tried
from .twins import twins

Functions = Mapping[str, Any]
"""What a file defines, by name."""
_Rooms = tuple[tuple[Callable[[Axes], float], int], ...]
GUARDED = 1 << 18
"""Bytes around the tensors of a call."""
_BOUNDED = frozenset({"normalisation", "elementwise"})
"""Tags of problems whose answers are no larger than their inputs."""
FOLLOW, TWINS = "follow", "other_patterns"
"""Functions of a file where sizes follow from a pattern: what follows, and other structures of the
same sizes."""
TERMS = "terms that were counted"
"""In the cache of a structure."""
_Bound = Callable[[Mapping[str, Any]], Any]


def problem_of_module(module: ModuleType, policy: Policy | None = None) -> Problem:
    """The problem of a module of ours, or what it is in another precision.

    Raises:
        UsageError: its declaration says what cannot be, or it has no such precision.
    """
    path, name = str(module.__file__), module.__name__.rpartition(".")[2]
    with open(path, encoding="utf-8") as file:
        text = file.read()
    return problem_in(policy, name, text, path, vars(module))


def problem_in(
    policy: Policy | None, name: str, text: str, place: str, functions: Functions
) -> Problem:
    """The problem of a file, or what it is in another precision: `gemm` and `gemm_bf16`.

    Raises:
        UsageError: it says what cannot be, or it has no such precision.
    """
    declared = read_declaration(text, place)
    if policy is None:
        return problem_of(name, declared, functions)
    known = _policies(declared)
    if policy.name not in known:
        raise UsageError(
            f"{name} has no precision policy '{policy.name}'",
            hint=f"it has {', '.join(known)}" if known else "the types of its tensors are its own",
        )
    changed = read_declaration(declare_in(policy, text, place), place)
    made = problem_of(name_in(name, policy.name), changed, functions)
    return replace(made, base=name, title=f"{made.title} ({policy.meaning})", policies=())


def _policies(declared: Declaration) -> tuple[str, ...]:
    """In which it can be asked for."""
    return (*(HALVES if declared.is_of_float32 else ()), *declared.policies)


def problem_of(name: str, declared: Declaration, functions: Functions) -> Problem:
    """The problem of a declaration and the functions beside it.

    Raises:
        UsageError: one of them is missing, or asks for what nobody can give.
    """
    inputs, outputs = declared.input_tensors, declared.output_tensors
    index = [tensor.name for tensor in inputs if tensor.is_index]
    drawn = [tensor for tensor in inputs if not tensor.is_index]
    drawing = ("structure", "family", "rng", *declared.axes)
    if "values" in functions:
        make = _bind(name, functions, "values", drawing)
    else:
        make = _draw_each(drawn, declared)
    is_summed = not _BOUNDED.intersection(declared.tags)
    answer = _bind(name, functions, "oracle", ("structure", *declared.axes, *declared.inputs))

    def values(structure: Structure, family: Family, rng: np.random.Generator) -> Arrays:
        known = {**structure.axes, "structure": structure, "family": family, "rng": rng}
        found = _name_each(make(known), [tensor.name for tensor in drawn])
        return {
            tensor.name: store(
                found[tensor.name],
                tensor,
                family,
                is_summed=is_summed,
                is_constant=tensor.name in declared.constants,
            )
            for tensor in drawn
        }

    # What is no number, or too large for one, is an answer.
    @np.errstate(all="ignore")
    def compute(structure: Structure, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
        pattern = {each: structure.arrays[each] for each in index}
        numbers = decode_all(arrays, declared.codes)
        given = widen(numbers, also_integers=bool(declared.policy))
        known = {**structure.axes, **pattern, **given, "structure": structure}
        found = _name_each(answer(known), [tensor.name for tensor in outputs])
        coded = {name: codec for name, codec in declared.codes.items() if name in found}
        return found | {name: encode_answer(found[name], how) for name, how in coded.items()}

    return Problem(
        name=name,
        title=declared.title,
        definition=declared.definition,
        axes=dict(declared.axes),
        inputs=inputs,
        outputs=outputs,
        source=declared.source,
        workloads=declared.all_workloads,
        values=values,
        oracle=_make_oracle(compute, declared),
        flops=lambda axes: float(value_of(declared.flops, axes)),
        bytes_moved=lambda axes: _bytes_of(inputs + outputs, axes),
        baselines=_baselines(declared, functions) or (_of_oracle(compute),),
        families=declared.legal_families,
        precision=precision_of(
            [dtype_of(t.dtype) for t in drawn],
            [dtype_of(t.dtype) for t in outputs],
            declared.nrmse,
            declared.policy if declared.policy in ASKED else "",
        ),
        accuracy=declared.accuracy,
        is_row_wise=declared.is_row_wise,
        skeleton=declared.skeleton,
        backward_of=declared.backward_of,
        constants=declared.constants,
        bound=declared.bound,
        codes=declared.codes,
        tags=declared.tags,
        headline=declared.headline,
        policies=_policies(declared),
        version=declared.version,
        **_structures(name, declared, functions),
    )


def _make_oracle(
    compute: Callable[[Structure, Arrays], dict[str, Any]], declared: Declaration
) -> MeasuringOracle:
    """The oracle: what an answer may be wrong by is measured where the file does not say."""
    near: dict[str, int] = {}
    constants = (*declared.constants, *declared.bound, *declared.codes)

    def begin(structure: Structure, arrays: Arrays) -> tuple[Arrays, dict[str, Any], Oracle]:
        """What it is given, what it makes of that, and who gives its plain arrays for others."""
        arrays = widen(decode_all(arrays, declared.codes), also_integers=True)
        found = compute(structure, arrays)
        plain = [name for name, each in found.items() if not isinstance(each, Expected)]

        def ask(moved: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
            if not plain:
                return {}
            answers = compute(structure, dict(moved))
            return {name: each for name, each in answers.items() if name in plain}

        return arrays, found, ask

    def answer(structure: Structure, arrays: Arrays) -> Arrays:
        arrays, found, ask = begin(structure, arrays)
        exact = answer_exactly(ask, arrays)
        return {n: e.value if isinstance(e, Expected) else exact[n] for n, e in found.items()}

    def oracle(structure: Structure, arrays: Arrays) -> dict[str, Expected]:
        arrays, found, ask = begin(structure, arrays)
        rounded = {name: e for name, e in found.items() if not isinstance(e, Expected)}
        if not rounded:
            return found
        if TERMS not in structure.cache:
            structure.cache[TERMS] = count_terms(ask, arrays, constants, near)
        terms = structure.cache[TERMS]
        return found | measure_conditions(ask, arrays, terms, rounded, constants)

    return MeasuringOracle(oracle, answer)


def _baselines(declared: Declaration, functions: Functions) -> tuple[Baseline, ...]:
    """The file's own functions go before those that it shares."""
    shared = vars(SHARED[declared.baselines]) if declared.baselines else {}
    types = {t.dtype for t in (*declared.input_tensors, *declared.output_tensors)}
    is_wide = types <= {FLOAT32.name, INT32.name}
    known = {**shared, **functions}
    if is_wide:
        known.pop(NARROW, None)
    found = baselines_of(known, declared.writes_inputs)
    if is_wide:
        return found
    # numpy sums halves in halves, and other libraries have no such types.
    return tuple(each for each in found if each.requires.partition(".")[0] == "torch")


def _structures(name: str, declared: Declaration, functions: Functions) -> dict[str, Any]:
    """How its structures are made and varied."""
    names, ranges = tuple(declared.axes), declared.ranges
    if not declared.has_pattern:
        rooms = _rooms(declared)
        ranges = {axis: _bound(rooms, names, axis, kind) for axis, kind in ranges.items()}
        free = [axis for axis, kind in ranges.items() if not kind.choices]
        vary = dense.variations_of(ranges)
        count = partial(_elements_of, (*declared.input_tensors, *declared.output_tensors))
        lift = dense.lift_to(declared.least, ranges)
        kept: _Rooms = ((count, HIDDEN_ELEMENTS), *_without_ones(rooms, names))
        cuts = [dense.cut_to(most, counted, ranges) for counted, most in kept]

        def variations(
            structure: Structure, rng: np.random.Generator, tried: Tried | None = None
        ) -> Iterator[Structure]:
            drawn = vary(structure, rng, tried)
            for change in (*cuts, lift):
                drawn = map(change, drawn)
            return (s for s in drawn if _has_room(rooms, s.axes))

        return {
            "ranges": ranges,
            "structure": dense.structure_maker(ranges),
            "variations": variations,
            "bulk": dense.bulk_of(ranges, partial(_has_room, rooms), lift)
            if len(free) > 1
            else no_bulk,
        }
    return _vary_pattern(name, declared, functions)


def _vary_pattern(problem: str, declared: Declaration, functions: Functions) -> dict[str, Any]:
    """The same on a sparse pattern, from which sizes and index arrays may follow."""
    drawn = {axis: kind for axis, kind in declared.ranges.items() if axis not in declared.follows}
    names, tensors = tuple(drawn), (*declared.input_tensors, *declared.output_tensors)
    own = {name: kind for name, kind in drawn.items() if name not in sparse.OWN_AXES}
    sized = tuple(t for t in tensors if not _follows(t, declared))
    room = room_of(sized, names, drawn)
    structure, others = sparse.structure_maker(*names), twins
    variations = sparse.variations_of(*names, dense=own, room=room)
    bulk = sparse.bulk_of(*names, dense=own, room=room)
    if declared.follows:
        follow = _bind(problem, functions, FOLLOW, ("structure", "drawn"))
        change = partial(_add_what_follows, follow, tuple(declared.axes))
        structure, bulk = follow_workload(structure, change), follow_bulk(bulk, change)
        variations = follow_variations(variations, change)
        others = functions.get(TWINS, no_twins)
    rooms = _rooms(declared)

    def keep(hidden: Iterator[Structure]) -> Iterator[Structure]:
        return (each for each in hidden if _has_room(rooms, each.axes))

    return {
        "ranges": drawn,
        "structure": structure,
        "variations": lambda *given: keep(variations(*given)),
        "bulk": lambda *given: keep(bulk(*given)),
        "twins": others,
    }


def _follows(tensor: Tensor, declared: Declaration) -> bool:
    return any(axis in declared.follows for term in tensor.shape for axis in names_in(term))


def _add_what_follows(
    follow: _Bound, names: tuple[str, ...], structure: Structure, drawn: Drawn
) -> Structure | None:
    """What a file's function makes of a structure, its axes in the order of the C parameters."""
    made: Structure | None = follow({"structure": structure, "drawn": drawn})
    if made is None:
        return None
    return replace(
        structure,
        axes={axis: made.axes[axis] for axis in names},
        arrays=made.arrays,
        cache=made.cache,
        follows=frozenset(made.axes) - structure.axes.keys(),
    )


def _bound(rooms: _Rooms, names: tuple[str, ...], axis: str, kind: Range) -> Range:
    """As long as one axis alone may be within what a hidden shape may have."""
    if kind.choices:
        return kind
    ones = dict.fromkeys(names, 1)
    # What grows with the square of a length is bounded by no difference of two.
    too_long = bisect_left(
        range(2, kind.most + 1), True, key=lambda n: not _has_room(rooms, {**ones, axis: n})
    )
    return replace(kind, most=1 + too_long)


def _has_room(rooms: _Rooms, axes: Mapping[str, int]) -> bool:
    """Whether a hidden shape is as small as it must be, beside what every shape has."""
    return all(count(dict(axes)) <= room for count, room in _without_ones(rooms, tuple(axes)))


def _without_ones(rooms: _Rooms, names: tuple[str, ...]) -> _Rooms:
    """The same, of what is beside that which the shape of ones has."""
    ones = dict.fromkeys(names, 1)

    def count_more(count: Callable[[Axes], float], axes: Axes) -> float:
        return count(axes) - count(ones)

    return tuple((partial(count_more, count), room) for count, room in rooms)


def _rooms(declared: Declaration) -> _Rooms:
    """Bytes of inputs and of outputs, and elements between them, each with its most."""
    held = declared.held
    return (
        (partial(_bytes_of, declared.input_tensors), HIDDEN_INPUTS - GUARDED),
        (partial(_bytes_of, declared.output_tensors), HIDDEN_OUTPUTS - GUARDED),
        *([(lambda axes: float(value_of(held, axes)), HIDDEN_HELD)] if held else []),
    )


def _bytes_of(tensors: tuple[Tensor, ...], axes: Axes) -> float:
    """Each once."""
    return sum(float(math.prod(t.extent(axes)) * DTYPES[t.dtype].bytes) for t in tensors)


def _elements_of(tensors: tuple[Tensor, ...], axes: Axes) -> int:
    """Of all together."""
    return sum(math.prod(t.extent(axes)) for t in tensors)


def _of_oracle(compute: Callable[[Structure, Arrays], dict[str, Any]]) -> Baseline:
    """The oracle itself, in float32 as it is given it, where a file has nothing better."""

    def prepare(call: BaselineCall) -> Prepared:
        structure = Structure(call.axes, call.inputs)

        def write() -> None:
            for name, answer in compute(structure, call.inputs).items():
                value = answer.value if isinstance(answer, Expected) else answer
                np.copyto(call.outputs[name], value, casting="unsafe")

        return write

    return Baseline("oracle", prepare, requires="numpy")


def _draw_each(drawn: list[Tensor], declared: Declaration) -> _Bound:
    """Each input of the family, as it is. NONFINITE has NaN only: what becomes of an infinity is
    for a file to say."""

    def make(known: Mapping[str, Any]) -> Arrays:
        axes, family, rng = known["structure"].axes, known["family"], known["rng"]
        arrays = {
            t.name: draw_codes(declared.codes[t.name], family, t.extent(axes), rng)
            if t.name in declared.codes
            else draw(family, t.extent(axes), rng)
            for t in drawn
        }
        for name, array in arrays.items():
            if name not in (*declared.constants, *declared.codes):
                blemish(family, array, rng, (np.nan,))
        return arrays

    return make


def _bind(problem: str, functions: Functions, name: str, can: tuple[str, ...]) -> _Bound:
    """A function of a file, called with what its parameters name, which must be among `can`."""
    function = functions.get(name)
    if not callable(function):
        raise UsageError(
            f"the problem {problem} defines no function '{name}'",
            hint=f"def {name}(…), with parameters out of {', '.join(can)}",
        )
    parameters = inspect.signature(function).parameters
    wanted = [each for each in parameters if each in can]
    lacking = [k for k, each in parameters.items() if k not in can and each.default is each.empty]
    if lacking:
        line = getattr(function, "line", 0) or function.__code__.co_firstlineno
        raise UsageError(
            f"the problem {problem}, line {line}: {name} asks for '{lacking[0]}'",
            hint=f"it can be given {', '.join(can)}",
        )
    return lambda known: function(**{each: known[each] for each in wanted})


def _name_each(found: Any, names: list[str]) -> dict[str, Any]:
    """By name, where the only one was given as it is, or several in their order."""
    if isinstance(found, dict):
        return found
    given = found if isinstance(found, tuple) and not isinstance(found, Expected) else (found,)
    return dict(zip(names, given, strict=True))
