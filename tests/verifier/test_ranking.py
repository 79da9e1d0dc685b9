"""Modelled times put kernels in the order that the literature has them in, counted by emulation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.recipes import get
from kernelwright.sandbox.builders import toolchain
from kernelwright.traces.records import Depth, Level, Profile
from kernelwright.verifier.request import Order, Task
from kernelwright.verifier.stands import emulated_looks
from kernelwright.verifier.stands.cuda_candidate import CudaCandidate
from kernelwright.verifier.stands.emulated import EmulatedStand
from kernelwright.verifier.stands.opening import open_stand
from kernelwright.verifier.stands.stand import Stand
from kernelwright.verifier.stands.verdict_draft import Draft

Profiled = Callable[..., Profile]
Change = Callable[[str], str]
L2_RATE = 132 * 32 * 1980
"""Bytes a microsecond: 32 in each cycle of each SM of an H200."""


@pytest.fixture(scope="module")
def session_on(shared_cache: Path) -> Iterator[Callable[[str, str], Stand]]:
    opened: dict[tuple[str, str], Stand] = {}

    def find(problem: str, workload: str) -> Stand:
        if (problem, workload) not in opened:
            opened[problem, workload] = open_session(problem, workload, shared_cache)
        return opened[problem, workload]

    yield find
    for stand in opened.values():
        stand.close()


def open_session(problem: str, workload: str, cache: Path) -> Stand:
    task = Task(
        problem=problem,
        workload=registry.get(problem).workload(workload),
        target="sm_90",
        languages=("cuda",),
        cache_dir=str(cache),
    )
    try:
        toolchain.find_nvrtc()
        toolchain.find_nvdisasm()
        return open_stand(task)
    except PrerequisiteError as error:
        pytest.skip(str(error))


@pytest.fixture
def profiled(session_on: Callable[[str, str], Stand]) -> Profiled:
    def profile(stand: Stand, source: str) -> Profile:
        if not isinstance(stand, EmulatedStand):
            pytest.skip("this machine has the device")
        order = Order(source=source, language="cuda", protocol=Depth.SCREEN)
        draft = Draft(order, stand.session, b"x")
        made = stand.tools.build("cuda", source, 1)
        assert isinstance(made, CudaCandidate)
        rng = np.random.default_rng(1)
        report = emulated_looks.look_for_races(draft, made, rng)
        assert draft.is_right, draft.checks
        return emulated_looks.profile_emulated(draft, made, report, rng)

    def of(problem: str, workload: str, family: str, change: Change = str, **knobs: int) -> Profile:
        recipe = get(problem, family, "cuda")
        source = change(recipe.render({**recipe.first_knobs(), **knobs}))
        return profile(session_on(problem, workload), source)

    return of


def modelled(profile: Profile) -> float:
    found = profile.get("modelled_us")
    assert found is not None
    assert any("counts: emulated" in remark for remark in profile.remarks), profile.remarks
    return found


@pytest.mark.slow
def test_warp_merging_makes_spmm_faster(profiled: Profiled) -> None:
    """The ends of GE-SpMM's ladder on the graph that it is told for, as an H200 has them, too. Row
    caching alone is no step of it there (docs/results/model-pairs.md)."""
    naive, merging = (profiled("spmm_csr", "pubmed-128", family) for family in ("naive", "crc-cwm"))
    assert modelled(naive) > 1.1 * modelled(merging)
    # What B's rows need to pass through L2 bounds it; no branch or tail that is not taken does.
    gathered_us = 88648 * 128 * 4 / L2_RATE
    assert 0.8 * gathered_us < (merging.get("model_l2_us") or 0) < 1.6 * gathered_us


@pytest.mark.heavy
@pytest.mark.slow
def test_tiles_and_padding_make_a_product_faster(profiled: Profiled) -> None:
    naive, tiled, padded = (
        profiled("gemm", "512", family, **knobs)
        for family, knobs in (("naive", {}), ("tiled", {"pad": 0}), ("tiled", {"pad": 4}))
    )
    assert modelled(naive) > modelled(tiled) > modelled(padded)
    conflicts = [each.get("shared_store_bank_conflicts") or 0.0 for each in (tiled, padded)]
    assert conflicts[0] > 2 * conflicts[1]


@pytest.mark.heavy
@pytest.mark.slow
@pytest.mark.parametrize(("problem", "element"), [("gemm_f16", "fp16"), ("gemm_bf16", "bf16")])
def test_tensor_cores_make_a_product_of_halves_faster(
    profiled: Profiled, problem: str, element: str
) -> None:
    naive, wmma = (profiled(problem, "512", family) for family in ("naive", "wmma"))
    assert modelled(naive) > 2 * modelled(wmma)
    assert naive.get("peak_tflops") == wmma.get("peak_tflops") == 989
    # As often as the emulation says: each product once.
    assert wmma.get("executed_tensor_flops") == pytest.approx(2 * 512**3, rel=0.01)
    assert (wmma.get(f"tensor_{element}") or 0) > 0
    assert (wmma.get("model_tensor_cores_us") or 0) > 0
    told = [any("no kernel uses tensor" in r for r in p.remarks) for p in (naive, wmma)]
    assert told == [True, False]
    assert naive.get("executed_tensor_flops") == 0


@pytest.mark.slow
def test_in_strict_float32_nobody_is_told_to_use_tensor_cores(profiled: Profiled) -> None:
    naive = profiled("gemm", "512", "naive")
    assert not any("tensor" in remark for remark in naive.remarks)
    assert naive.get("peak_tflops") == 67


@pytest.mark.slow
def test_each_emulated_figure_names_the_kernel_and_the_workload_of_the_time(
    profiled: Profiled,
) -> None:
    """The tiny workloads of this plan take its scalar kernels, whose figures are others."""
    found = profiled("spmm_csr", "pubmed-128", "row-seq")
    units = {m.unit for m in found.metrics if m.level is Level.EMULATED and ":" not in m.name}
    assert units == {"in spmm_seq<4> on pubmed-128"}
    of_tensors = {m.unit for m in found.metrics if m.name.startswith("traffic_share:")}
    assert of_tensors == {"in all launches on pubmed-128"}
    wasteful = [remark for remark in found.remarks if "sectors per request" in remark]
    assert all(remark.endswith(", in spmm_seq<4> on pubmed-128") for remark in wasteful)


@pytest.mark.slow
def test_what_cannot_be_counted_on_the_workload_is_told(profiled: Profiled) -> None:
    """Here a kernel that stops on large matrices; the tiny one stands for them."""
    stop = ("if (row >= M) return;", "if (M > 10000) __trap(); if (row >= M) return;")
    found = profiled("spmm_csr", "pubmed-128", "crc", lambda source: source.replace(*stop))
    (assumed,) = [remark for remark in found.remarks if "counts: " in remark]
    assert "counts: static (no emulation of pubmed-128: trap" in assumed
    assert "as emulated on tiny" in assumed
    units = {m.name: m.unit for m in found.metrics if m.level is Level.EMULATED}
    assert {unit for name, unit in units.items() if ":" not in name} == {"in spmm_crc<1> on tiny"}
    assert all(unit.endswith(" on tiny") for unit in units.values())
