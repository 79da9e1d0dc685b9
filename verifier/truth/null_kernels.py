# SPDX-License-Identifier: Apache-2.0
"""Null kernels: do these inputs tell a kernel that computes nothing from one that computes?

A test counts only if it rejects kernels that do no work (verification.md §3.12). Each null kernel
is held, through the same gates as a candidate, against every set of inputs that trials draw from.
Nothing here runs a candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from ...errors import NotDiscriminatingError
from ...kernelbench.codecs import host_dtype
from ...kernelbench.dtypes import BFLOAT16, DTYPES, FLOAT8_E4M3FN, FLOAT16, DType, dtype_of
from ...kernelbench.precision import FP32_SUMS, STRICT_FP32, TF32, TF32X3
from ...kernelbench.problem import Arrays, Expected, Family, Problem, Structure
from ...kernelbench.rows import shrink_to_whole
from ...traces.records import Check
from . import gates
from .poison import PATTERNS, fill

LARGE_BYTES = 8 << 20
"""Above this size only SHARP families and NORMAL are drawn on the workload itself; all others are
tried on the problem's tiny one."""
SAMPLE = 1 << 13
"""Elements that are looked at first: what fails there fails on the whole."""
TILE = 4
"""`first tile only` computes one part in this many."""
DOWNCAST = "downcast"
DOWNCASTS = {
    STRICT_FP32.policy: FLOAT16,
    TF32X3: FLOAT16,
    TF32: BFLOAT16,
    FP32_SUMS: BFLOAT16,
}
"""By policy the inputs' type in which nobody may compute instead; of bfloat16 itself it is e4m3."""
MEAN, FIRST_TILE = "mean constant", "first tile only"
_OF_SEVERAL = (MEAN, FIRST_TILE)
"""Null kernels that are right where an answer has one element alone: there they say nothing."""
FEW_ANSWERS, REDRAWN = 256, 12
"""Of so few numbers in an answer chance may hide what tells, so that other draws are looked at: 25
normal numbers around a random mean have all one sign in one draw of 40, and a relu of them is 0, or
its input; of 256 that is one in a thousand million."""
FEW = 128
"""Elements of the inputs of one sum in which narrow ones show. Of n terms a sum may be wrong by
4u·sqrt(n) of itself, and float16 makes it so by 2^-12 / sqrt(n): as much at n = 1000. The tiny
workload and the short hidden shapes tell."""
SHARP = (Family.EXACT, Family.PROBE, Family.LARGE)
"""The families that every plan of trials contains where the problem has them."""
_ELEMENTWISE = (gates.SHAPE, gates.WRITTEN, gates.POSITIONS, gates.SCALED, gates.EXACT, gates.PROBE)


@dataclass(frozen=True)
class Scene:
    """One set of inputs with its right answers, and what a null kernel may make of it."""

    problem: Problem
    structure: Structure
    family: Family
    inputs: Arrays
    expected: dict[str, Expected]
    before: Arrays
    """The right values of an earlier call: what the output buffer held."""

    def answer(self, name: str) -> np.ndarray:
        """The right answer in the output's dtype."""
        return self.expected[name].store_as(self.dtype_of(name))

    def store(self, name: str, values: Arrays) -> np.ndarray:
        """Other right values of an output in its dtype."""
        return replace(self.expected[name], value=values[name]).store_as(self.dtype_of(name))

    def dtype_of(self, name: str) -> np.dtype:
        """The type of an output's elements."""
        return host_dtype(dtype_of(next(t.dtype for t in self.problem.outputs if t.name == name)))


Null = Callable[[Scene, str], np.ndarray]
"""Makes one output from a scene."""


def nulls(problem: Problem) -> dict[str, Null]:
    """The null kernels by name: every one that makes sense for the problem."""
    found: dict[str, Null] = {
        "zeros": lambda scene, name: np.zeros_like(scene.answer(name)),
        "ones": lambda scene, name: np.ones_like(scene.answer(name)),
        MEAN: _mean,
        "untouched": _answer_untouched,
        FIRST_TILE: _first_tile,
        "previous output": _answer_previous,
    }
    for tensor in problem.inputs:
        if not tensor.is_index and dtype_of(tensor.dtype).is_float:
            found[f"copy of {tensor.name}"] = _copy_of(tensor.name)
    if problem.precision.policy in DOWNCASTS:
        found[DOWNCAST] = _downcast
    return found


def admit(problem: Problem, structure: Structure, rng: np.random.Generator) -> list[Check]:
    """One check per null kernel: the sets of trials that evaluations draw all reject it.

    Of a workload of many rows some tell, as many as evaluations judge together at least: what
    passes on all of them passes on those.

    Every evaluation has trials of the SHARP families, and draws its timed calls, which are
    checked too, from NORMAL. So a kernel that does no work must fail on each of those families,
    and on more than half of all. A silent downcast must fail on the first of PROBE, LARGE and
    NORMAL that the problem has: integers survive it. In long sums its error averages out, below
    what float32 may be wrong by: there it must fail on the tiny workload.

    Raises:
        NotDiscriminatingError: names the null kernel and the family that let it pass.
    """
    failed: dict[str, list[Family]] = {name: [] for name in nulls(problem)}
    passed: dict[str, list[Family]] = {name: [] for name in nulls(problem)}
    part = shrink_to_whole(problem, structure, rng)
    for where, drawn in _scenes(problem, part, rng):
        for name, null in nulls(problem).items():
            if not _is_held(problem, name, drawn):
                continue
            if (
                rejects(drawn, null)
                or _rejects_another(drawn, null, rng)
                or (name == DOWNCAST and _rejects_small(drawn, null, rng))
            ):
                failed[name].append(drawn.family)
                continue
            passed[name].append(drawn.family)
            if drawn.family in (*SHARP, Family.NORMAL) or len(problem.families) == 1:
                told = structure if drawn.structure is part else drawn.structure
                raise _too_weak(problem, name, drawn.family, where, told)
    for name, families in passed.items():
        if len(families) >= max(len(failed[name]), 1):
            raise _too_weak(problem, name, families[0], "most", structure)
    return [
        Check(
            name=f"null kernel '{name}' rejected",
            passed=True,
            figure=float(len(families)),
            detail=f"fails on {_list_families(families)}"
            + (f"; passes on {_list_families(passed[name])}" if passed[name] else ""),
        )
        for name, families in failed.items()
        if families or passed[name]
    ]


def _too_weak(
    problem: Problem, null: str, family: Family, where: str, structure: Structure
) -> NotDiscriminatingError:
    axes = ", ".join(f"{name}={value}" for name, value in structure.axes.items())
    return NotDiscriminatingError(
        f"{problem.name}: the null kernel '{null}' passes on {where} inputs of family "
        f"'{family}' ({axes})",
        hint="these inputs cannot verify anybody: use a larger or denser workload, or draw the "
        f"family '{family}' so that the answer depends on every input",
    )


def _list_families(families: list[Family]) -> str:
    return ", ".join(dict.fromkeys(families))


def rejects(scene: Scene, null: Null) -> bool:
    """Whether the gates reject what the null kernel leaves in the outputs of this scene."""
    return any(_fails(scene, name, null(scene, name)) for name in scene.expected)


def _rejects_another(drawn: Scene, null: Null, rng: np.random.Generator) -> bool:
    """Whether other inputs show a null kernel that passed where answers have FEW_ANSWERS."""
    if any(expected.value.size > FEW_ANSWERS for expected in drawn.expected.values()):
        return False
    others = (scene(drawn.problem, drawn.structure, drawn.family, rng) for _ in range(REDRAWN))
    return any(rejects(other, null) for other in others)


def _rejects_small(drawn: Scene, null: Null, rng: np.random.Generator) -> bool:
    """Whether the tiny workload, which every evaluation tries, shows a null kernel that passed."""
    tiny = _tiny(drawn.problem)
    return tiny is not None and rejects(scene(drawn.problem, tiny, drawn.family, rng), null)


def _tiny(problem: Problem) -> Structure | None:
    found = next((w for w in problem.workloads if w.kind == "tiny"), None)
    return problem.structure(found) if found else None


def _is_held(problem: Problem, null: str, drawn: Scene) -> bool:
    """Whether a null kernel must fail on a scene."""
    is_single = all(e.value.size == 1 for e in drawn.expected.values())
    if null in _OF_SEVERAL and is_single:
        return False
    if null != DOWNCAST:
        return True
    if is_single and sum(array.size for array in drawn.inputs.values()) > FEW:
        return False
    telling = (f for f in (Family.PROBE, Family.LARGE, Family.NORMAL) if f in problem.families)
    return drawn.family is next(telling, problem.families[0])


def _scenes(
    problem: Problem, structure: Structure, rng: np.random.Generator
) -> Iterator[tuple[str, Scene]]:
    is_large = problem.bytes_moved(structure.axes) > LARGE_BYTES
    families = problem.families
    if is_large:
        families = tuple(f for f in families if f in (*SHARP, Family.NORMAL)) or families[:1]
    before: Arrays | None = None
    for family in families:
        drawn = scene(problem, structure, family, rng, before)
        yield "the workload's", drawn
        # Large answers take long to work out: one stands for what the buffer held before.
        before = {n: e.value for n, e in drawn.expected.items()} if is_large else None
    if is_large and (small := _tiny(problem)):
        for family in problem.families:
            yield "the tiny workload's", scene(problem, small, family, rng)


def scene(
    problem: Problem,
    structure: Structure,
    family: Family,
    rng: np.random.Generator,
    before: Arrays | None = None,
) -> Scene:
    """Draws inputs of the family; without `before`, the call before them is drawn from it too."""
    if before is None:
        before = problem.answer(structure, problem.values(structure, family, rng))
    inputs = problem.values(structure, family, rng)
    return Scene(problem, structure, family, inputs, problem.oracle(structure, inputs), before)


def _fails(scene: Scene, name: str, got: np.ndarray) -> bool:
    expected = scene.expected[name]
    if got.size > 2 * SAMPLE:
        few = _sample(got.shape)
        part = replace(
            expected,
            value=expected.value[few],
            scale=_cut(expected.scale, got.ndim, few),
            terms=_cut(expected.terms, got.ndim, few),
            streams=None if expected.streams is None else expected.streams[few[0]],
        )
        # G3 depends on what is summed together, so only elementwise gates count on a sample.
        if any(c.name in _ELEMENTWISE for c in _failed_checks(scene, name, got[few], part)):
            return True
    return bool(_failed_checks(scene, name, got, expected))


def _failed_checks(scene: Scene, name: str, got: np.ndarray, expected: Expected) -> list[Check]:
    found = gates.check_output(
        name,
        np.ascontiguousarray(got),
        expected,
        scene.problem.precision,
        scene.family,
        poison=PATTERNS[0],
    )
    return [check for check in found if not check.passed]


def _sample(shape: tuple[int, ...]) -> tuple[slice, ...]:
    """Whole rows spread over the tensor, the last ones among them."""
    rows = max(1, SAMPLE // max(1, int(np.prod(shape[1:]))))
    step = max(1, shape[0] // rows)
    return (slice((shape[0] - 1) % step, None, step), *(slice(None) for _ in shape[1:]))


def _cut(array: np.ndarray | float, ndim: int, few: tuple[slice, ...]) -> np.ndarray:
    whole = np.asarray(array)
    whole = whole.reshape((1,) * (ndim - whole.ndim) + whole.shape)
    return whole[few[0]] if whole.shape[0] > 1 else whole


def _mean(scene: Scene, name: str) -> np.ndarray:
    answer = scene.answer(name)
    usable = answer[np.isfinite(answer)]
    return np.full_like(answer, usable.mean(dtype=np.float64) if usable.size else 0.0)


def _answer_untouched(scene: Scene, name: str) -> np.ndarray:
    answer = scene.answer(name)
    fill(answer, PATTERNS[0])
    return answer


def _first_tile(scene: Scene, name: str) -> np.ndarray:
    """Right at first, zero beyond: what a kernel leaves that stops early in cleared memory."""
    answer = scene.answer(name)
    flat = answer.reshape(-1).copy()
    flat[max(1, flat.size // TILE) :] = 0
    return flat.reshape(answer.shape)


def _answer_previous(scene: Scene, name: str) -> np.ndarray:
    return scene.store(name, scene.before)


def _narrow(array: np.ndarray, narrow: DType) -> np.ndarray:
    """Floats as a narrower type holds them; bfloat16 with the digits of e4m3."""
    own = DTYPES.get(array.dtype.name)
    if own is None or not own.is_float:
        return array
    if narrow.digits < own.digits:
        return array.astype(host_dtype(narrow)).astype(np.float32)
    digits = FLOAT8_E4M3FN.digits
    part, power = np.frexp(array.astype(np.float64))
    rounded: np.ndarray = np.ldexp(np.rint(np.ldexp(part, digits)), power - digits)
    return rounded.astype(np.float32)


def _copy_of(source: str) -> Null:
    def copy(scene: Scene, name: str) -> np.ndarray:
        """The input where it has the output's shape, else broadcast, else repeated to fill it."""
        shape, array = scene.answer(name).shape, scene.inputs[source]
        try:
            found = np.array(np.broadcast_to(array, shape))
        except ValueError:
            found = np.resize(array, shape)
        with np.errstate(all="ignore"):
            return found.astype(scene.dtype_of(name))

    return copy


def _downcast(scene: Scene, name: str) -> np.ndarray:
    """The answer of inputs whose numbers have fewer digits than the policy allows."""
    narrow = DOWNCASTS[scene.problem.precision.policy]
    with np.errstate(all="ignore"):
        rounded = {key: _narrow(array, narrow) for key, array in scene.inputs.items()}
        values = scene.problem.answer(scene.structure, rounded)
    return scene.store(name, values)
