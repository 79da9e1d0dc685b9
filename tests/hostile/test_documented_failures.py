"""The failures that KernelBench is documented to let pass, at every length of a row.

Zeros for a softmax or a norm, the input for an activation, and half precision sold as float32:
each is held against the families that every evaluation draws, from rows of 64 elements to rows of
65,536, and once each against the whole referee.
"""

from __future__ import annotations

import numpy as np
import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import Family, Structure
from kernelwright.traces.records import Status
from kernelwright.verifier.truth import null_kernels

LENGTHS = tuple(1 << power for power in range(6, 17))
ROWS = 4
CLAIMS = {
    "softmax": ("zeros", "downcast"),
    "layernorm": ("zeros", "downcast"),
    "rmsnorm": ("zeros", "downcast"),
    "bias_gelu": ("zeros", "copy of x", "downcast"),
}
PARAMETERS = {
    "softmax": "const float* x, float* y",
    "rmsnorm": "const float* x, const float* gamma, float* y",
}
ZEROS = """extern "C" void {name}(int M, int N, {parameters}) {{
    for (long i = 0; i < (long)M * N; ++i) y[i] = 0;
}}
"""
HALF = """#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

static float cut(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    bits &= 0xffffe000u;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

extern "C" void softmax(int M, int N, const float* x, float* y) {
    std::vector<double> power(N);
    for (long i = 0; i < M; ++i) {
        const float* row = x + i * N;
        double most = cut(row[0]), sum = 0;
        for (int j = 1; j < N; ++j) most = std::fmax(most, cut(row[j]));
        for (int j = 0; j < N; ++j) sum += power[j] = std::exp(cut(row[j]) - most);
        for (int j = 0; j < N; ++j) y[i * N + j] = static_cast<float>(power[j] / sum);
    }
}
"""


def always_drawn(name: str) -> list[Family]:
    """NORMAL, from which every timed call is drawn, and the sharp families of the trials."""
    families = registry.get(name).families
    return [family for family in (*null_kernels.SHARP, Family.NORMAL) if family in families]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", CLAIMS)
def test_no_length_of_a_row_lets_them_pass(name: str, length: int) -> None:
    problem = registry.get(name)
    structure = Structure({"M": ROWS, "N": length})
    rng = np.random.default_rng(length)
    nulls = null_kernels.nulls(problem)
    for family in always_drawn(name):
        for _ in range(3):
            scene = null_kernels.scene(problem, structure, family, rng)
            for claim in CLAIMS[name]:
                assert null_kernels.rejects(scene, nulls[claim]), (claim, family)
            # The same gates let the rounded truth pass: they are not merely strict.
            assert not null_kernels.rejects(scene, lambda scene, output: scene.answer(output))


@pytest.mark.slow
@pytest.mark.parametrize("name", PARAMETERS)
def test_the_referee_rejects_zeros(court, name: str) -> None:
    source = ZEROS.format(name=name, parameters=PARAMETERS[name])
    verdict = court.judge(source, name, expected=(Status.INCORRECT,))
    assert verdict.status is Status.INCORRECT, verdict.reasons


def test_the_referee_rejects_half_precision(court) -> None:
    verdict = court.judge(HALF, "softmax", expected=(Status.INCORRECT,))
    assert verdict.status is Status.INCORRECT, verdict.reasons
