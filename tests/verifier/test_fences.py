"""Fences: stray accesses end the process that is timed; honest kernels do not notice them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.recipes import recipes_for
from kernelwright.sandbox.run.process import RunFault
from kernelwright.tests.sampling import one_in
from kernelwright.traces.records import Check, Depth, Status
from kernelwright.verifier.checks import fenced_memory
from kernelwright.verifier.stands import sides
from kernelwright.verifier.stands.programs import build_program
from kernelwright.verifier.stands.session import Session

HONEST = """
extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C) {
    for (int i = 0; i < M; ++i)
        for (int n = 0; n < N; ++n) {
            float sum = 0;
            for (int p = indptr[i]; p < indptr[i + 1]; ++p)
                sum += values[p] * B[(long)indices[p] * N + n];
            C[(long)i * N + n] = sum;
        }
    @
}
"""
AFTER, BEFORE = "each tensor ends where memory ends", "each tensor begins where memory begins"

Sessions = Callable[[str], Session]


def examined(session: Session, source: str) -> Check:
    rng = np.random.default_rng(6)
    program = build_program(session, source, "cpp")
    with (
        sides.arena_for(session) as arena,
        sides.start_side(session, Depth.FULL, "candidate", program, arena, rng) as side,
    ):
        found = fenced_memory.examine(side, session.stage, rng)
        # The fences are down again: a plain call finds its guard bands as they were.
        assert fenced_memory.examine(side, session.stage, rng).passed == found.passed
        return found


@pytest.mark.parametrize(
    ("deed", "where"),
    [
        ("volatile float sink = values[nnz + 16];", AFTER),
        ("volatile float sink = B[(long)K * N + 16];", AFTER),
        ("volatile int sink = indptr[-1];", BEFORE),
        ("volatile float sink = C[-1];", BEFORE),
        ("volatile float sink = C[(long)M * N + 16];", AFTER),
        ("C[(long)M * N + 1000] = 1;", AFTER),
    ],
)
@pytest.mark.jail
def test_an_access_beside_a_tensor_ends_the_process(
    session_for: Sessions, deed: str, where: str
) -> None:
    with pytest.raises(RunFault) as died:
        examined(session_for("spmm_csr"), HONEST.replace("@", deed))
    assert died.value.status is Status.CRASHED
    assert died.value.reason.startswith(f"where {where} (inputs: ")
    assert died.value.reason.endswith(": the process died of SIGSEGV")


@pytest.mark.jail
def test_what_alignment_leaves_beside_an_input_cannot_be_used(session_for: Sessions) -> None:
    """Where alignment leaves room there is a NaN; where it leaves none, this one reads nothing."""
    deed = "if (M > 0 && N > 0 && nnz % 16) C[0] += 0.0f * values[nnz];"
    found = examined(session_for("spmm_csr"), HONEST.replace("@", deed))
    assert not found.passed
    assert AFTER in found.detail


@pytest.mark.jail
def test_an_honest_kernel_passes_and_can_be_called_on(session_for: Sessions) -> None:
    found = examined(session_for("spmm_csr"), HONEST.replace("@", ""))
    assert found.passed, found.detail
    assert found.figure is not None
    assert found.figure > 6


@pytest.mark.slow
@pytest.mark.parametrize("name", one_in(3, registry.names()))
def test_no_recipe_leaves_its_tensors(session_for: Sessions, name: str) -> None:
    for recipe in recipes_for(name):
        found = examined(session_for(name), recipe.render(recipe.first_knobs()))
        assert found.passed, (recipe.name, found.detail)
