"""Plans of trials: what every evaluation contains, whatever the seed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import Family
from kernelwright.sandbox.run.arena import footprint
from kernelwright.traces.records import Depth
from kernelwright.verifier.stands.contests import HIDDEN_ROOM
from kernelwright.verifier.truth.trials import LONG, SHARP, SPECIAL, TRIALS, Stage, plan

BEYOND_16_BITS = 1 << 16


def stage_of(name: str) -> Stage:
    problem = registry.get(name)
    tiny = problem.workload("tiny")
    others = tuple(
        (w.name, problem.structure(w)) for w in problem.workloads if w.kind == "adversarial"
    )
    return Stage(problem, problem.structure(tiny), tiny.name, others)


@pytest.mark.parametrize("name", registry.names())
def test_a_full_plan_has_every_family_and_the_special_ones_on_the_workload(name: str) -> None:
    stage = stage_of(name)
    for seed in range(5):
        trials = plan(stage, Depth.FULL, np.random.default_rng(seed))
        assert len(trials) == TRIALS[Depth.FULL]
        assert {t.family for t in trials} == set(stage.problem.families)
        on_target = {t.family for t in trials if t.name == stage.target_name}
        assert on_target >= {*SHARP, *SPECIAL} & set(stage.problem.families)


@pytest.mark.parametrize("name", registry.names())
def test_what_is_beyond_16_bits_is_tried_on_values_that_hide_nothing(name: str) -> None:
    stage = stage_of(name)
    for seed in range(5):
        hidden = plan(stage, Depth.FULL, np.random.default_rng(seed))[len(stage.others) :]
        long = [t for t in hidden if max(t.structure.axes.values()) >= LONG]
        assert {t.family for t in long if t.name.startswith("hidden")} <= set(SHARP)


@pytest.mark.parametrize("name", registry.names())
def test_a_full_plan_has_each_size_beyond_16_bits_that_is_legal(name: str) -> None:
    stage = stage_of(name)
    wide = {
        "gemm": {"M", "N", "K"},
        "layernorm": {"M"},
        "softmax": {"M"},
        "edge_softmax": {"M", "nnz"},
        "spmv_csr": {"M", "K", "nnz"},
        "spmm_csr": {"M", "K", "nnz"},
        "sddmm_csr": {"M", "K", "nnz"},
        "gspmm_reduce": {"M", "K", "nnz"},
    }.get(name, {"M", "N"})
    for seed in range(5):
        trials = plan(stage, Depth.FULL, np.random.default_rng(seed))
        seen = {
            axis
            for t in trials
            if t.name.startswith("hidden")
            for axis, size in t.structure.axes.items()
            if size > BEYOND_16_BITS
        }
        assert seen == wide


@pytest.mark.parametrize("name", registry.names())
def test_every_screening_has_a_wide_shape_and_values_that_are_not_finite(name: str) -> None:
    stage = stage_of(name)
    for seed in range(10):
        trials = plan(stage, Depth.SCREEN, np.random.default_rng(seed))
        assert any(max(t.structure.axes.values()) > BEYOND_16_BITS for t in trials)
        families = {t.family for t in trials}
        assert Family.NONFINITE in families
        sharp = {f for f in SHARP if f in stage.problem.families}
        assert len(families & sharp) >= min(len(sharp), 2)


@pytest.mark.parametrize("name", registry.names())
def test_hidden_shapes_fit_into_the_memory_that_is_kept_for_them(name: str) -> None:
    problem = registry.get(name)
    for workload, seed in itertools.product(("tiny", problem.default_workload.name), range(4)):
        base = problem.structure(problem.workload(workload))
        drawn = problem.variations(base, np.random.default_rng(seed))
        for structure in itertools.islice(drawn, 40):
            needed = footprint(problem, structure.axes)
            assert needed[0] <= HIDDEN_ROOM[0], structure.axes
            assert needed[1] <= HIDDEN_ROOM[1], structure.axes


def test_a_wide_pattern_has_a_row_of_more_than_16_bits_where_long_sums_are_legal() -> None:
    for name in ("spmv_csr", "edge_softmax"):
        problem = registry.get(name)
        base = problem.structure(problem.workload("tiny"))
        wide = next(problem.variations(base, np.random.default_rng(1)))
        longest = int(np.diff(wide.arrays["indptr"]).max())
        assert (longest > BEYOND_16_BITS) is (name == "spmv_csr")
        assert np.diff(wide.arrays["indptr"])[BEYOND_16_BITS:].any()
        if "K" in wide.axes:
            assert (wide.arrays["indices"] >= BEYOND_16_BITS).sum() > 50
