"""Plans of trials: what every evaluation contains, whatever the seed."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import Family
from kernelwright.kernelbench.sizes import BANDS, LANES
from kernelwright.kernelbench.tried import LEAST_SHORT, RESIDUES, Tried
from kernelwright.sandbox.run.arena import footprint
from kernelwright.tests.sampling import at_most, one_in
from kernelwright.tests.verifier.reach import (
    is_roomy,
    least_remainders,
    list_free,
    list_lengths,
    longest,
    share_tensors,
    shortest_pair,
)
from kernelwright.traces.records import Depth
from kernelwright.verifier.checks.checking import _change_item
from kernelwright.verifier.stands.sides import HIDDEN_ROOM
from kernelwright.verifier.truth.trials import (
    BULK_SHAPES,
    ENTRIES,
    FAR,
    FEW_BUILT,
    LEAST_TRIALS,
    LONG,
    NO_BULK,
    SHAPES,
    SHARP,
    SHOWING,
    SPECIAL,
    Stage,
    Trial,
    make_item,
    on_long_rows,
    patient_plan,
    plan,
)

BEYOND_16_BITS = 1 << 16
SEEDS = range(3)
NAMES = at_most(25, registry.names())


@cache
def stage_of(name: str) -> Stage:
    problem = registry.get(name)
    tiny = problem.workload("tiny")
    others = tuple(
        (w.name, problem.structure(w)) for w in problem.workloads if w.kind == "adversarial"
    )
    return Stage(problem, problem.structure(tiny), tiny.name, others)


@cache
def full_plan(name: str, seed: int) -> list[Trial]:
    """As of the first evaluation of a campaign, without index arrays; once for all tests."""
    stage = replace(stage_of(name), tried=Tried(seed))
    return [
        replace(trial, structure=replace(trial.structure, arrays={}))
        for trial in plan(stage, Depth.FULL, np.random.default_rng(seed))
    ]


def list_hidden(trials: list[Trial]) -> list[Trial]:
    """Those on hidden shapes, without a second one on the same, which is of NONFINITE."""
    seen: dict[str, Trial] = {}
    for trial in trials:
        if trial.name.startswith("hidden shape"):
            first = seen.setdefault(trial.name, trial)
            assert first is trial or trial.family is Family.NONFINITE
    return list(seen.values())


@pytest.mark.parametrize("name", one_in(3, NAMES))
def test_a_full_plan_has_every_family_and_the_special_ones_on_the_workload(name: str) -> None:
    stage = stage_of(name)
    for seed in SEEDS:
        trials = full_plan(name, seed)
        assert len(trials) >= LEAST_TRIALS
        hidden = list_hidden(trials)
        assert len(hidden) == SHAPES[Depth.FULL]
        assert {t.family for t in trials} == set(stage.problem.families)
        on_target = {t.family for t in trials if t.name == stage.target_name}
        assert on_target >= {*SHARP, *SPECIAL} & set(stage.problem.families)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_beyond_16_bits_is_tried_on_values_that_hide_nothing(name: str) -> None:
    for seed in SEEDS:
        drawn = full_plan(name, seed)
        hidden = [*list_hidden(drawn), *(t for t in drawn if t.name.startswith("hidden bulk"))]
        # Of those that are long in their entries alone, and hold fewer than that, some are on any.
        least = {ENTRIES: BEYOND_16_BITS}
        long = [
            t
            for t in hidden
            if any(
                length >= least.get(axis, LONG)
                for axis, length in t.structure.axes.items()
                if axis not in t.structure.follows
            )
        ]
        assert {t.family for t in long} <= set(SHARP)


@pytest.mark.parametrize("name", NAMES)
def test_each_axis_is_long_with_every_family_that_hides_nothing(name: str) -> None:
    stage = stage_of(name)
    sharp = set(SHARP) & set(stage.problem.families)
    for seed in SEEDS:
        hidden = list_hidden(full_plan(name, seed))
        for axis in stage.target.axes:
            if axis == ENTRIES or axis in stage.target.follows:
                continue  # many are long in their entries; some of those are on any values
            met = [t.family for t in hidden if t.structure.axes[axis] >= LONG]
            assert set(met) == (sharp if len(met) >= 2 * len(sharp) else set(met)), axis
            assert len(set(met)) >= min(len(met), len(sharp), 2), axis


@pytest.mark.parametrize("name", NAMES)
def test_a_full_plan_has_each_axis_beyond_16_bits_and_with_nearly_every_remainder(
    name: str,
) -> None:
    for seed in SEEDS:
        hidden = [t.structure.axes for t in list_hidden(full_plan(name, seed))]
        for axis in list_free(name):
            lengths = {axes[axis] for axes in hidden}
            assert max(lengths) > longest(name, axis), axis
            assert len({length % RESIDUES for length in lengths}) >= least_remainders(name, axis)
            for band in BANDS:
                if longest(name, axis) >= band:
                    long = {length % LANES for length in lengths if length >= band}
                    is_free = is_roomy(name) and not stage_of(name).target.follows
                    assert len(long) >= (LANES if is_free else LANES - 4), (axis, band)


@pytest.mark.parametrize("name", NAMES)
def test_short_shapes_bring_remainders_on_values_that_hide_nothing(name: str) -> None:
    for seed in SEEDS:
        hidden = list_hidden(full_plan(name, seed))
        sharp = [t for t in hidden if t.family in SHARP]
        telling = [t for t in sharp if t.structure.is_telling and t.family in SHOWING]
        for axis in list_free(name):
            met = {t.structure.axes[axis] % RESIDUES for t in telling}
            # Of an axis that is never long, a quarter of its most is no shorter than others' short.
            least = min(LEAST_SHORT, max(1, registry.get(name).ranges[axis].most // 4))
            assert len(met) >= least_remainders(name, axis, least), axis
            for trial in telling:
                assert trial.structure.axes[axis] >= least
        # Others keep their part: what one family hides another shows.
        assert len(hidden) - len(sharp) >= SHAPES[Depth.FULL] // 12


@pytest.mark.parametrize("name", one_in(3, NAMES))
def test_every_screening_has_a_wide_shape_and_values_that_are_not_finite(name: str) -> None:
    stage = stage_of(name)
    for seed in range(10):
        trials = plan(stage, Depth.SCREEN, np.random.default_rng(seed))
        widest = max(map(partial(longest, name), list_lengths(name)))
        assert any(max(t.structure.axes.values()) > widest for t in trials)
        families = {t.family for t in trials}
        assert (Family.NONFINITE in families) is (Family.NONFINITE in stage.problem.families)
        sharp = {f for f in SHARP if f in stage.problem.families}
        assert len(families & sharp) >= min(len(sharp), 2)


LENGTHS = {"softmax": "N", "softmax_backward": "N", "layernorm": "N", "rmsnorm": "N", "gemm": "K"}
"""Axes that dense problems reduce."""


def long_nonfinite(trials: list[Trial], axis: str) -> list[int]:
    """The lengths along the axis of trials on values that are not finite, where they are far."""
    tried = [t.structure.axes[axis] for t in trials if t.family is Family.NONFINITE]
    return sorted(length for length in tried if length >= FAR)


@pytest.mark.parametrize("has_others", [True, False])
@pytest.mark.parametrize(("name", "axis"), LENGTHS.items())
def test_every_plan_has_values_that_are_not_finite_on_long_rows(
    name: str, axis: str, has_others: bool
) -> None:
    stage = stage_of(name)
    for seed in range(6):
        one = replace(stage, others=stage.others if has_others else (), tried=Tried(seed))
        rng = np.random.default_rng(seed)
        for trials in (
            plan(one, Depth.SCREEN, rng),
            plan(one, Depth.FULL, rng, shapes=FEW_BUILT, bulk=NO_BULK),
        ):
            lengths = long_nonfinite(trials, axis)
            assert lengths[0] < LONG <= lengths[-1]
        # An interpreter has one that is LONG, on sharp values.
        assert long_nonfinite(patient_plan(one, Depth.FULL, rng), axis)


def test_a_problem_without_such_values_has_none_on_long_rows() -> None:
    stage = stage_of("softmax")
    finite = tuple(f for f in stage.problem.families if f is not Family.NONFINITE)
    stage = replace(stage, problem=replace(stage.problem, families=finite))
    trials = plan(stage, Depth.SCREEN, np.random.default_rng(0))
    assert not on_long_rows(stage, trials, np.random.default_rng(0))
    assert Family.NONFINITE not in {t.family for t in trials}


SEVERAL = [name for name in NAMES if len(list_lengths(name)) > 1]


@pytest.mark.parametrize("name", SEVERAL)
def test_a_full_plan_has_shapes_that_are_long_in_two_axes_at_once(name: str) -> None:
    stage = stage_of(name)
    for seed in SEEDS:
        drawn = full_plan(name, seed)
        bulk = [t for t in drawn if t.name.startswith("hidden bulk")]
        assert len(bulk) == BULK_SHAPES[Depth.FULL]
        assert {t.family for t in bulk} <= {*SHARP} & {*stage.problem.families}
        elements = [
            max(math.prod(t.extent(trial.structure.axes)) for t in stage.problem.tensors)
            for trial in bulk
        ]
        if share_tensors(name) > 1:
            assert min(elements) >= min(1 << 13, shortest_pair(name) // 8)
            assert max(elements) >= min(
                1 << (18 if is_roomy(name) else 16), shortest_pair(name) // 4
            )
        for trial in bulk:
            one, other = sorted(trial.structure.axes.values())[-2:]
            assert one >= (500 if is_roomy(name) else 16), trial.name
            assert one * other >= 1 << (19 if is_roomy(name) else 12), trial.name


def test_patterns_of_vectors_have_more_entries_than_16_bits_count() -> None:
    for seed in SEEDS:
        bulk = [t for t in full_plan("spmm_shflbw", seed) if t.name.startswith("hidden bulk")]
        assert max(t.structure.axes[ENTRIES] for t in bulk) > 1 << 15


@pytest.mark.parametrize("name", ["spmm_csr", "bsr_sdd", "gat_fused", "spmm_shflbw"])
def test_nearly_every_remainder_of_rows_and_of_columns_has_an_entry_at_the_end(name: str) -> None:
    # A kernel that leaves out the last row, or the last column, shows it in these alone.
    for seed in SEEDS:
        stage = replace(stage_of(name), tried=Tried(seed))
        rows, columns = set(), set()
        for trial in plan(stage, Depth.FULL, np.random.default_rng(seed)):
            axes, arrays = trial.structure.axes, trial.structure.arrays
            if arrays["indptr"][-1] > arrays["indptr"][-2]:
                rows.add(axes["M"] % RESIDUES)
            if (arrays["indices"] == axes["K"] - 1).any():
                columns.add(axes["K"] % RESIDUES)
        assert min(len(rows), len(columns)) >= RESIDUES - 8


@pytest.mark.parametrize("name", SEVERAL)
def test_of_three_such_shapes_one_has_whole_vectors(name: str) -> None:
    axes = set(registry.get(name).axes) - {"M", "K", ENTRIES} - stage_of(name).target.follows
    for seed in SEEDS if axes else ():
        bulk = [t for t in full_plan(name, seed) if t.name.startswith("hidden bulk")]
        assert any(t.structure.axes[axis] % 64 == 0 for t in bulk for axis in axes)


@pytest.mark.parametrize("name", NAMES)
def test_where_shapes_are_dear_none_is_long_in_two_axes(name: str) -> None:
    stage = stage_of(name)
    rng = np.random.default_rng(0)
    few = [plan(stage, Depth.SCREEN, rng), patient_plan(stage, Depth.FULL, rng)]
    few.append(plan(stage, Depth.FULL, rng, shapes=FEW_BUILT, bulk=NO_BULK))
    assert not any(t.name.startswith("hidden bulk") for trials in few for t in trials)


@pytest.mark.parametrize("name", one_in(3, NAMES))
def test_hidden_shapes_fit_into_the_memory_that_is_kept_for_them(name: str) -> None:
    problem = registry.get(name)
    for workload, seed in itertools.product(("tiny", problem.default_workload.name), range(4)):
        base = problem.structure(problem.workload(workload))
        drawn = problem.variations(base, np.random.default_rng(seed))
        bulk = problem.bulk(base, np.random.default_rng(seed))
        for structure in (*itertools.islice(drawn, 40), *itertools.islice(bulk, 12)):
            needed = footprint(problem, structure.axes)
            assert needed[0] <= HIDDEN_ROOM[0], structure.axes
            assert needed[1] <= HIDDEN_ROOM[1], structure.axes


@pytest.mark.parametrize("name", ["spmv_csr", "edge_softmax"])
def test_wide_patterns_have_long_rows_and_entries_in_the_last_ones(name: str) -> None:
    problem = registry.get(name)
    base = problem.structure(problem.workload("tiny"))
    wide = next(problem.variations(base, np.random.default_rng(1)))
    assert int(np.diff(wide.arrays["indptr"]).max()) > BEYOND_16_BITS
    assert np.diff(wide.arrays["indptr"])[BEYOND_16_BITS:].any()
    if "K" in wide.axes:
        assert (wide.arrays["indices"] >= BEYOND_16_BITS).sum() > 50


@pytest.mark.parametrize("seed", range(4))
def test_every_plan_of_whole_numbers_has_sums_that_float32_cannot_count(seed: int) -> None:
    problem, rng = registry.get("gemm_int8"), np.random.default_rng(seed)
    wrong = 0
    for trial in full_plan("gemm_int8", seed):
        if trial.family in SHOWING and trial.structure.axes["K"] > 1100:
            inputs = problem.values(trial.structure, trial.family, rng)
            products = inputs["A"][0].astype(np.int64) * inputs["B"][:, 0]
            summed = np.cumsum(products.astype(np.float32), dtype=np.float32)[-1]
            wrong += int(summed) != products.sum()
    assert wrong > 10


def test_a_changed_element_of_a_small_integer_is_another_one_of_its_type() -> None:
    problem = registry.get("gemm_int8")
    structure = problem.structure(problem.workload("tiny"))
    rng = np.random.default_rng(1)
    for _ in range(20):
        item = make_item(problem, structure, Family.NORMAL, rng)
        changed = _change_item(problem, item, None, rng)
        differing = [np.count_nonzero(changed.inputs[n] != item.inputs[n]) for n in item.inputs]
        assert sum(differing) == 1
        assert (changed.expected["C"].value != item.expected["C"].value).any()
