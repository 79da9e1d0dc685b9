# SPDX-License-Identifier: Apache-2.0
"""The error gates: is one output the right answer, within what its arithmetic allows?

Pure functions of arrays (verification.md §3). They know no process, no problem and no clock. An
array of any bytes is a possible output: every comparison is written so that a NaN fails it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from ...kernelbench.dtypes import DTYPES, TENSORS, DType
from ...kernelbench.precision import SUM_FACTOR, Precision
from ...kernelbench.problem import Expected, Family
from ...traces.records import Check
from . import digits, random_rounding
from .poison import FULL, find_left, is_telling
from .teller import Teller

BLOCK = 1 << 13
"""Elements looked at together: their float64 temporaries stay in the L2 cache and below the size
from which every allocation costs page faults. Gate G3 is held on each block, too."""

LOOKED_OVER = 1 << 16
"""Elements of a large answer that are looked over together."""

UNDERFLOW = 4 * 2.0**-126
"""RMS error that gate G3 never looks at. Where all answers of a block are near the end of the
normal range (the half of a long softmax row without its maximum), flushing them, or an exponential
that is clamped there, is a large share of their size and still nothing; G1 holds each of them."""

MANY = 64
"""Elements whose RMS error is one: of fewer gate G3 allows more, 8 times as much of a single one,
which G1 holds by itself."""

ONE_SIDED = (Family.SORTED, Family.ALTERNATING)
"""Terms of one sign may come one after the other, in the order in which an honest kernel adds."""

WRITTEN, POSITIONS, SHAPE = "every element written", "G4 NaN and Inf positions", "shape and dtype"
SCALED, NRMSE, EXACT = "G1 condition-scaled error", "G3 NRMSE", "exact bits"
PROBE = "precision probe"

Block = tuple[slice, ...]


@dataclass
class _Worst:
    """The largest ratio error / limit of one gate, and where it was."""

    ratio: float = 0.0
    at: tuple[int, ...] = ()

    def see(self, ratios: np.ndarray, block: Block) -> None:
        # argmax gives the first NaN where there is one: it stays the worst.
        flat = int(ratios.argmax())
        ratio = float(ratios.flat[flat])
        if not (ratio <= self.ratio) and self.ratio == self.ratio:
            inner = np.unravel_index(flat, ratios.shape)
            self.ratio = ratio
            self.at = tuple(int(i) + s.start for i, s in zip(inner, block, strict=True))


@dataclass
class _Sums:
    """Sums of squares behind an NRMSE, of one block or of the whole tensor."""

    error: float = 0.0
    reference: float = 0.0
    walk: float = 0.0
    count: int = 0
    terms: float = 1.0
    underflow: float = 0.0
    """What may be off whatever the size of the answer."""

    def add(self, other: _Sums) -> None:
        self.error += other.error
        self.reference += other.reference
        self.walk += other.walk
        self.count += other.count
        self.terms = max(self.terms, other.terms)
        self.underflow = max(self.underflow, other.underflow)

    @property
    def nrmse(self) -> float:
        """RMS error over the size of the answer, or of what a sum of such terms passes through.

        The second keeps the gate fair where terms cancel: there the answer itself is noise.
        """
        count = max(self.count, 1)
        rms_error = math.sqrt(self.error / count) - UNDERFLOW - self.underflow
        rms_size = math.sqrt(max(self.reference, self.walk) / count)
        if rms_error <= 0.0:
            return 0.0
        return rms_error / rms_size if rms_size > 0.0 else float("inf")

    def limit(self, precision: Precision, family: Family) -> float:
        """Never below what a long sum may be wrong by on the average, thrice over.

        Neighbours among sorted terms are nearly equal and round alike, so that it may be more. Of
        few elements no average can be told: one that cancels is off by many times the usual.
        """
        factor = SUM_FACTOR if family is Family.SORTED else 2
        few = max(1.0, math.sqrt(MANY / max(1, self.count)))
        return few * max(precision.nrmse, factor * precision.u_acc * math.sqrt(self.terms))


@dataclass
class _Survey:
    """What one pass over an output found."""

    scaled: _Worst = field(default_factory=_Worst)
    probe: _Worst = field(default_factory=_Worst)
    whole: _Sums = field(default_factory=_Sums)
    nrmse: float = 0.0
    nrmse_limit: float = 0.0
    nrmse_at: tuple[int, ...] = ()
    unwritten: int = 0
    unwritten_at: tuple[int, ...] = ()
    misplaced: int = 0
    misplaced_at: tuple[int, ...] = ()
    unequal: int = 0
    unequal_at: tuple[int, ...] = ()


def check_output(
    name: str,
    got: np.ndarray,
    expected: Expected,
    precision: Precision,
    family: Family,
    *,
    poison: int | None,
    workload: str = "",
    places: np.ndarray | None = None,
) -> list[Check]:
    """Holds the output `name` against every gate that applies; all must pass.

    Args:
        name: The output's name, for the details.
        got: What the candidate wrote, of one of TENSORS, a private copy.
        expected: The oracle's answer.
        precision: The arithmetic that the problem allows.
        family: The inputs' family: EXACT and PROBE have gates of their own.
        poison: Bit pattern that the output was filled with before the call, if it was.
        workload: Named in each check.
        places: Where its rows lie in the whole answer, if it is a part of one.
    """
    value = np.asarray(expected.value)
    if value.ndim == 0:
        got, value = got.reshape(-1), value.reshape(1)
    if got.shape != value.shape or got.dtype.name not in [each.name for each in TENSORS]:
        wanted = f"{' or '.join(map(str, TENSORS))} {list(value.shape)}"
        detail = f"{name}: {got.dtype} {list(got.shape)}, wanted {wanted}"
        return [Check(name=SHAPE, passed=False, detail=detail, workload=workload)]
    dtype = DTYPES[got.dtype.name]
    precision = expected.hold(precision.rounded_to(dtype))
    is_exact = expected.is_held_exact(family, dtype)
    poison = poison if is_telling(dtype) else None
    with np.errstate(all="ignore"):
        survey = _survey(got, expected, precision, family, poison=poison, is_exact=is_exact)
    teller = Teller(name, got, value, workload, places)
    checks = [teller.tell(SHAPE, True)]
    if poison is not None:
        checks.append(teller.count(WRITTEN, survey.unwritten, survey.unwritten_at, "never written"))
    checks.append(teller.count(POSITIONS, survey.misplaced, survey.misplaced_at, "misplaced"))
    if expected.streams is not None:
        with np.errstate(all="ignore"):
            found = [*random_rounding.examine(got, value, expected.streams, dtype)]
        return [*checks, *map(teller.finding, found)]
    if is_exact:
        return [*checks, teller.count(EXACT, survey.unequal, survey.unequal_at, "different")]
    checks.append(teller.ratio(SCALED, survey.scaled.ratio, survey.scaled.at))
    checks.append(_tell_nrmse(teller, survey))
    if family is Family.PROBE:
        checks.append(teller.ratio(PROBE, survey.probe.ratio, survey.probe.at))
    if digits.is_held(precision, family, dtype):
        with np.errstate(all="ignore"):
            checks.append(teller.finding(digits.examine(got, value)))
    return checks


def _tell_nrmse(teller: Teller, survey: _Survey) -> Check:
    passed = bool(survey.nrmse <= survey.nrmse_limit) or teller.value.size == 0
    where = ", ".join(str(i) for i in survey.nrmse_at)
    part = f"block from [{where}]" if survey.nrmse_at else "whole"
    return teller.tell(NRMSE, passed, survey.nrmse, survey.nrmse_limit, f"{teller.name}, {part}")


def look_over(name: str, got: np.ndarray, family: Family, *, poison: int) -> list[Check]:
    """What can be told of a whole answer without the truth, at the speed of memory.

    Every element was written, and is finite where the inputs are. Of a type with float16's range an
    infinity may be right: a sum that float32 holds is beyond it. There NaN alone tells.
    """
    flat, dtype = got.reshape(-1), DTYPES[got.dtype.name]
    tells, is_wide = is_telling(dtype), dtype.is_wide
    unwritten, strange, first = 0, 0, -1
    for start in range(0, flat.size, LOOKED_OVER):
        part = flat[start : start + LOOKED_OVER]
        hit = find_left(part, poison) if tells else np.zeros(part.shape, bool)
        unwritten += int(np.count_nonzero(hit))
        odd = hit
        if family is not Family.NONFINITE:
            odd = odd | (~np.isfinite(part) if is_wide else np.isnan(part))
        strange += int(np.count_nonzero(odd))
        if first < 0 and strange:
            first = start + int(odd.argmax())
    at = "" if first < 0 else ", ".join(map(str, np.unravel_index(first, got.shape)))
    found = []
    for check, count, what in (
        (WRITTEN, unwritten, "never written"),
        (POSITIONS, strange - unwritten, "not finite"),
    ):
        detail = f"{count} of {flat.size} {what}; first {name}[{at}]" if count else ""
        found.append(
            Check(name=check, passed=not count, figure=float(count), limit=0.0, detail=detail)
        )
    return found


def allowed_error(expected: Expected, precision: Precision) -> np.ndarray:
    """The error that gate G1 allows each element, without the share of its row's RMS."""
    terms = np.maximum(np.asarray(expected.terms, dtype=np.float64), 1.0)
    with np.errstate(all="ignore"):
        precision = expected.hold(precision)
        size = np.abs(expected.value)
        steps = 0 if expected.streams is None else 2 * precision.half_step(size)
        return np.asarray(precision.limit(size, expected.scale, terms)) + steps


def first_failure(checks: Iterable[Check]) -> Check | None:
    """The first check that did not pass, or None."""
    return next((check for check in checks if not check.passed), None)


def blocks(shape: tuple[int, ...], size: int = BLOCK) -> Iterator[Block]:
    """Slices that cover an array of `shape`, each of at most `size` elements, rows kept whole.

    What is cut is cut evenly: a last sliver of one small element would have no size to speak of.
    """
    inner = 1
    axis = len(shape)
    while axis > 0 and inner * shape[axis - 1] <= size:
        axis -= 1
        inner *= max(shape[axis], 1)
    if axis == 0:
        yield tuple(slice(0, n) for n in shape)
        return
    length, most = shape[axis - 1], max(1, size // inner)
    cuts = np.linspace(0, length, -(-length // most) + 1).astype(int).tolist()
    tail = tuple(slice(0, n) for n in shape[axis:])
    for outer in np.ndindex(*shape[: axis - 1]):
        head = tuple(slice(i, i + 1) for i in outer)
        for start, stop in itertools.pairwise(cuts):
            yield (*head, slice(start, stop), *tail)


def _survey(
    got: np.ndarray,
    expected: Expected,
    precision: Precision,
    family: Family,
    *,
    poison: int | None,
    is_exact: bool,
) -> _Survey:
    survey = _Survey()
    value = np.atleast_1d(np.asarray(expected.value, dtype=np.float64))
    scale = _align_axes(expected.scale, value.ndim)
    terms = np.maximum(_align_axes(expected.terms, value.ndim), 1.0)
    for block in blocks(value.shape):
        if not (part := got[block]).size:
            continue
        usable = _places(survey, part, value[block], block, poison, precision)
        if expected.streams is not None:
            continue
        if is_exact:
            _survey_exact(survey, part, value[block], block)
            continue
        y, r, s = part.astype(np.float64), value[block], _part(scale, block)
        if usable is not None:
            y, r, s = (np.where(usable, a, 0.0) for a in (y, r, s))
        _measure(survey, y, r, s, _part(terms, block), precision, block, family)
    if survey.whole.count:
        _hold_nrmse(survey, survey.whole, precision, family, ())
    return survey


def _align_axes(array: np.ndarray | float, ndim: int) -> np.ndarray:
    """A view with `ndim` axes, those of extent 1 standing for all: broadcasting made explicit."""
    values = np.asarray(array, dtype=np.float64)
    return values.reshape((1,) * (ndim - values.ndim) + values.shape)


def _part(array: np.ndarray, block: Block) -> np.ndarray:
    return array[
        tuple(b if n > 1 else slice(0, 1) for n, b in zip(array.shape, block, strict=True))
    ]


def _places(
    survey: _Survey,
    part: np.ndarray,
    value: np.ndarray,
    block: Block,
    poison: int | None,
    precision: Precision,
) -> np.ndarray | None:
    """Looks at poison and at NaN and Inf; gives the mask of comparable elements, None for all."""
    if poison is not None:
        hit = find_left(part, poison)
        if hit.any():
            survey.unwritten += int(hit.sum())
            survey.unwritten_at = survey.unwritten_at or _first_place(hit, block)
    dtype = DTYPES[part.dtype.name]
    if dtype.is_integral:
        return None
    largest = float(np.abs(value).max())
    if largest <= dtype.largest and bool(np.isfinite(part).all()):
        return None
    want = value.astype(part.dtype)
    is_free = _is_at_end(value, dtype)
    if precision.is_split:
        is_free |= np.isinf(value) & np.isnan(part)
    want = np.where(is_free, part, want)
    wrong = (np.isnan(part) != np.isnan(want)) | (np.isinf(part) != np.isinf(want))
    wrong |= np.isinf(part) & np.isinf(want) & (np.signbit(part) != np.signbit(want))
    if wrong.any():
        survey.misplaced += int(wrong.sum())
        survey.misplaced_at = survey.misplaced_at or _first_place(wrong, block)
    return np.asarray(np.isfinite(part) & np.isfinite(want))


def _is_at_end(value: np.ndarray, dtype: DType) -> np.ndarray:
    """Which answers may be the largest number of a narrow type as well as infinity."""
    if dtype.bytes >= FULL:
        return np.zeros(value.shape, bool)
    return np.asarray(np.abs(np.abs(value) / dtype.largest - 1) <= 2 * dtype.roundoff)


def _survey_exact(survey: _Survey, part: np.ndarray, value: np.ndarray, block: Block) -> None:
    want = value.astype(part.dtype)
    # == lets −0 pass for +0: the sign of a zero sum depends on the order of its terms.
    wrong = ~((part == want) | (np.isnan(part) & np.isnan(want)))
    if wrong.any():
        survey.unequal += int(wrong.sum())
        survey.unequal_at = survey.unequal_at or _first_place(wrong, block)


def _measure(
    survey: _Survey,
    y: np.ndarray,
    r: np.ndarray,
    s: np.ndarray,
    terms: np.ndarray,
    precision: Precision,
    block: Block,
    family: Family,
) -> None:
    size = np.abs(r)
    error = np.abs(np.subtract(y, r, out=y), out=y)
    slack = absolute = precision.underflow * terms
    if r.ndim > 1:
        # The only absolute term: one rounding of the row's RMS. A vector has rows of one element.
        rows = np.sqrt(np.einsum("...i,...i->...", r, r) / r.shape[-1])
        absolute = absolute + precision.u_acc * rows[..., None]
    limit = precision.limit_before_rounding(size, s, terms)
    limit += absolute
    beyond = precision.take_off_rounding(error, size, limit)
    ratios = beyond / limit
    if not (limit.max() < np.inf):
        # An infinite limit would let anything pass.
        ratios[~(limit < np.inf)] = np.nan
    survey.scaled.see(ratios, block)
    if family is Family.PROBE:
        allowed = precision.probe * np.maximum(size, s) + slack
        if precision.step:
            allowed += precision.roundings * precision.u_out * size
        survey.probe.see(precision.take_off_rounding(error, size, allowed) / allowed, block)
    # As far as partial sums go: where signs are drawn at random with the square root of the terms,
    # where terms are sorted, or alternate and are added in lanes of one sign each, up to half of
    # the whole, before the rest takes it back.
    walk = s / 2 if family in ONE_SIDED else s / np.sqrt(terms)
    sums = _Sums(
        error=_squares(beyond),
        reference=_squares(size),
        walk=_squares(walk) * (r.size / walk.size),
        count=r.size,
        terms=float(terms.max()),
        underflow=float(slack.max()),
    )
    survey.whole.add(sums)
    _hold_nrmse(survey, sums, precision, family, tuple(part.start for part in block))


def _hold_nrmse(
    survey: _Survey, sums: _Sums, precision: Precision, family: Family, at: tuple[int, ...]
) -> None:
    figure, limit = sums.nrmse, sums.limit(precision, family)
    if not survey.nrmse_limit or not (figure / limit <= survey.nrmse / survey.nrmse_limit):
        survey.nrmse, survey.nrmse_limit, survey.nrmse_at = figure, limit, at


def _first_place(mask: np.ndarray, block: Block) -> tuple[int, ...]:
    inner = np.unravel_index(int(mask.argmax()), mask.shape)
    return tuple(int(i) + s.start for i, s in zip(inner, block, strict=True))


def _squares(values: np.ndarray) -> float:
    flat = values.ravel()
    return float(np.dot(flat, flat))
