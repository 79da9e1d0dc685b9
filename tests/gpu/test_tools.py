"""Nsight Compute and compute-sanitizer over candidates, where they are installed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kernelwright.sandbox.run.device import nvml
from kernelwright.tests.gpu.kernels import INDEX, source
from kernelwright.traces.records import Check
from kernelwright.verifier.profile import nsight
from kernelwright.verifier.profile.counters import with_counters
from kernelwright.verifier.profile.metrics import load_packaged
from kernelwright.verifier.stands import device_sanitizer

if TYPE_CHECKING:
    from .conftest import Bench


@pytest.mark.parametrize("which", ["quick", "cudaforge", "full"])
def test_every_metric_is_known_to_the_profiler(
    large: Bench, device: nvml.Device, honest: str, tmp_path: Path, which: str
) -> None:
    ncu = nsight.find_ncu()
    if ncu is None:
        pytest.skip("Nsight Compute is not installed")
    names = load_packaged().names(device.architecture, which)
    with large.host(honest, tmp_path, calls=nsight.WARM_UP_CALLS + 1, is_separate=False) as (
        _,
        host,
    ):
        found = nsight.measure(
            ncu, host, names, ["k"], launches=1, environment=large.way.environment
        )
    if isinstance(found, nsight.NotProfiled):
        if "does not know" in found.reason:
            pytest.fail(f"{found.reason}\n{found.log[-1000:]}")
        pytest.skip(f"{found.reason}: {found.hint}")
    (launch,) = found
    assert set(names) == set(launch.figures) | set(launch.missing)
    profile = with_counters(found, load_packaged(), device.architecture, ncu_version=ncu.version)
    moved = large.problem.bytes_moved(large.structure.axes)
    told = profile.get("dram__bytes.sum")
    # Half of it may stay in the L2 cache as it is written.
    assert told is None or 0.3 * moved < told < 5 * moved


@pytest.fixture
def sanitizer() -> Path:
    found = device_sanitizer.find()
    if found is None:
        pytest.skip("compute-sanitizer is not installed")
    return found


def examined(bench: Bench, sanitizer: Path, tool: str, text: str, folder: Path) -> Check:
    with bench.host(text, folder, calls=1, is_separate=True) as (_, host):
        found = device_sanitizer.examine(sanitizer, tool, host, environment=bench.way.environment)
    if isinstance(found, str):
        pytest.skip(found)
    return found


@pytest.mark.parametrize("tool", device_sanitizer.TOOLS)
def test_an_honest_kernel_is_clean(
    bench: Bench, sanitizer: Path, honest: str, tmp_path: Path, tool: str
) -> None:
    found = examined(bench, sanitizer, tool, honest, tmp_path)
    assert found.passed, found.detail


BUGS = {
    "memcheck": INDEX + "if (i <= (long)M * N) y[i] = gelu(x[i % (M * N)] + bias[i % N]);",
    "racecheck": INDEX + "__shared__ float s[256];\ns[threadIdx.x] = threadIdx.x;\n"
    "const float other = s[(threadIdx.x + 33) % 256];\n"
    "if (i < (long)M * N) y[i] = gelu(x[i] + bias[i % N]) + 0.0f * other;",
    "initcheck": INDEX + "if (i < (long)M * N) y[i] = gelu(x[i] + bias[i % N]) + 0.0f * y[i];",
    "synccheck": INDEX + "if (threadIdx.x % 2) __syncthreads();\n"
    "if (i < (long)M * N) y[i] = gelu(x[i] + bias[i % N]);",
}


@pytest.mark.parametrize("tool", sorted(BUGS))
def test_each_tool_finds_its_bug(bench: Bench, sanitizer: Path, tmp_path: Path, tool: str) -> None:
    grid = '["cdiv(M * N + 1, 256)"]'
    found = examined(bench, sanitizer, tool, source(BUGS[tool], grid=grid), tmp_path)
    assert not found.passed
    assert "k" in found.detail
