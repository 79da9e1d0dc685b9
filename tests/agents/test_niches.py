"""Niches and bounds from sources and figures."""

from __future__ import annotations

import pytest

from kernelwright.agents.search.niches import Bottleneck, Niche, bound_of, neighbours, niche, parse

PLAIN = "void f(const float* x, float* y, long n) { for (long i = 0; i < n; ++i) y[i] = x[i]; }"


def test_a_plain_loop_is_the_lowest_cell() -> None:
    assert niche(PLAIN, "cpp", {}) == Niche(0, 0, 0, Bottleneck.UNKNOWN)


def test_comments_count_for_nothing() -> None:
    told = PLAIN + "// omp parallel prefetch tile\n/* __builtin_prefetch */"
    assert niche(told, "cpp", {}) == niche(PLAIN, "cpp", {})


@pytest.mark.parametrize(
    ("line", "axis", "level"),
    [
        ("#pragma omp simd", "memory", 1),
        ("float tile_a[64];", "memory", 2),
        ("__builtin_prefetch(x);", "memory", 3),
        ("#pragma omp parallel for", "coordination", 1),
        ("#pragma omp parallel for schedule(dynamic)", "coordination", 2),
    ],
)
def test_levels_on_the_host(line: str, axis: str, level: int) -> None:
    assert getattr(niche(PLAIN + line, "cpp", {}), axis) == level


@pytest.mark.parametrize(
    ("line", "axis", "level"),
    [
        ("float4 v;", "memory", 1),
        ("__shared__ float t[32];", "memory", 2),
        ("__pipeline_memcpy_async(a, b, 16);", "memory", 3),
        ("v += __shfl_xor_sync(~0u, v, 1);", "algorithm", 2),
        ("wmma::mma_sync(c, a, b, c);", "algorithm", 3),
        ("__syncthreads();", "coordination", 1),
    ],
)
def test_levels_on_a_device(line: str, axis: str, level: int) -> None:
    assert getattr(niche("__global__ void f() {" + line + "}", "cuda", {}), axis) == level


def test_sparse_sources_tell_how_rows_are_given_out() -> None:
    assert niche("for (r...) indptr[r]", "cpp", {}).work == "rows"
    assert niche("std::upper_bound(indptr, indptr + m, k)", "cpp", {}).work == "nnz"
    assert niche(PLAIN, "cpp", {}).work == ""


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ({}, Bottleneck.UNKNOWN),
        ({"latency_us": 5.0, "cpu_utilisation": 0.3}, Bottleneck.LATENCY),
        ({"latency_us": 5.0, "cpu_utilisation": 0.9, "vectorised_loops": 0.0}, Bottleneck.COMPUTE),
        ({"latency_us": 5.0, "cpu_utilisation": 0.9, "vectorised_loops": 2.0}, Bottleneck.MEMORY),
        ({"model_memory_us": 5.0, "model_fp32_us": 3.0}, Bottleneck.MEMORY),
        ({"model_memory_us": 5.0, "model_fp32_us": 7.0}, Bottleneck.COMPUTE),
        ({"model_memory_us": 5.0, "model_latency_us": 7.0}, Bottleneck.LATENCY),
    ],
)
def test_bounds(figures: dict[str, float], expected: Bottleneck) -> None:
    assert bound_of(figures) is expected


def test_a_bound_from_counters() -> None:
    def counted(memory: float, compute: float) -> Bottleneck:
        return bound_of(
            {
                "dram__throughput.avg.pct_of_peak_sustained_elapsed": memory,
                "sm__throughput.avg.pct_of_peak_sustained_elapsed": compute,
            }
        )

    assert counted(80, 30) is Bottleneck.MEMORY
    assert counted(30, 80) is Bottleneck.COMPUTE
    assert counted(30, 40) is Bottleneck.LATENCY


def test_a_name_gives_the_cell_back() -> None:
    for cell in (Niche(3, 0, 1, Bottleneck.MEMORY, "nnz"), Niche(0, 0, 0, Bottleneck.UNKNOWN)):
        assert parse(cell.name) == cell


def test_neighbours_stay_inside_the_grid() -> None:
    corner = neighbours(Niche(0, 3, 1, Bottleneck.MEMORY))
    assert len(corner) == 4
    assert all(0 <= n.memory < 4 and 0 <= n.algorithm < 4 for n in corner)
