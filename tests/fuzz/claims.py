"""Times that a runner claims: any number at all, beside what the referee's own clock saw."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from hypothesis import strategies as st

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import Family, Problem, Structure
from kernelwright.sandbox.run.arena import Arena, Slot, footprint
from kernelwright.sandbox.run.process import Timed
from kernelwright.tests.fuzz.target import Target
from kernelwright.verifier.clock import clocks, timing
from kernelwright.verifier.clock.drawn_words import sum_outputs
from kernelwright.verifier.clock.timed_sides import CandidateSide
from kernelwright.verifier.truth.trials import make_item

SLOTS = 3
CALL_NS, EMPTY_NS = 100_000, 1_000
"""What a call and an empty one really take."""


class Liar:
    """A runner's end as the referee sees it: true times from outside, and claims."""

    clean = Timed(0, EMPTY_NS, EMPTY_NS)
    cpus = 2
    overhead_us = 0.0

    def __init__(self, claims: list[int]) -> None:
        self._claims = claims
        self._made = 0
        self.slots: list[Slot] = []

    def expect(self, table: bytes) -> None:
        assert not table, "a host candidate is given nothing behind its tensors"

    def ping(self, first: int = 0, count: int = 0) -> None:
        assert first + count <= SLOTS

    def call(
        self, slot: int, *, timeout_s: float, release: Callable[[], None], together: int
    ) -> Timed:
        assert slot < SLOTS
        assert together == 1
        assert timeout_s > 0
        release()
        self._made += 1
        claimed = self._claims[self._made % len(self._claims)]
        # It lies about its time only: no answer, or another sum over it, ends its trial at once.
        for output in self.slots[slot].outputs.values():
            output.fill(1.0)
        told_sum = sum_outputs(self.slots[slot].outputs, 0)
        return Timed(claimed, CALL_NS + EMPTY_NS, CALL_NS + EMPTY_NS, told_sum=told_sum)


@cache
def _target() -> tuple[Problem, Structure]:
    problem = registry.get("spmm_csr")
    return problem, problem.structure(problem.workload("tiny"))


def check(drawn: tuple[list[int], list[int]]) -> None:
    """Every claim ends in figures, and one far below the truth in a check that fails."""
    claims, counts = drawn
    problem, structure = _target()
    rng = np.random.default_rng(1)
    sizes = [SLOTS * size + 8192 for size in footprint(problem, structure.axes)]
    with Arena(*sizes) as arena:
        liar = Liar(claims)
        side = CandidateSide("candidate", liar, arena, problem, rng, timeout_s=1.0)  # type: ignore[arg-type]
        liar.slots = side.place(structure, SLOTS)
        items = [make_item(problem, structure, Family.NORMAL, rng) for _ in range(SLOTS)]
        samples = [side.take(items[:count], 0) for count in counts]
        side.answers().clear()
        side.slots.clear()
        liar.slots = []
    beside = [float(CALL_NS) / 1e3] * len(samples)
    series = timing.Series(
        blocks=[{"candidate": samples, "base": beside}], clocks=[side.clocks], batch=SLOTS
    )
    checks = {found.name: found for found in clocks.checks(series.seen, 2)}
    measured = timing.measurement(
        series,
        "candidate",
        ["base"],
        None,
        missing={},
        workload="w",
        floor_us=1.0,
        roof="bytes alone",
        threads=2,
        rng=rng,
    )
    assert min(samples) >= CALL_NS / 1e3, "no claim makes a call shorter than it was"
    assert measured.candidate.median_us >= CALL_NS / 1e3
    if max(claims) < 0.4 * CALL_NS:
        assert not checks["two clocks"].passed


_CLAIMS = st.one_of(
    st.integers(0, 2**64 - 1), st.integers(0, CALL_NS // 3), st.sampled_from((0, 1, 2**64 - 1))
)

TARGETS = (
    Target(
        "claims",
        st.tuples(
            st.lists(_CLAIMS, min_size=1, max_size=8),
            st.lists(st.integers(1, SLOTS), min_size=8, max_size=16),
        ),
        check,
        15,
    ),
)
