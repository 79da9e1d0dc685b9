"""The runner on a device: right answers, poison, guards, the cache, clocks, graphs, hangs."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest

from kernelwright.kernelbench.problem import Family
from kernelwright.kernelbench.targets import architecture
from kernelwright.sandbox.run.device import nvml
from kernelwright.sandbox.run.device.health import probe
from kernelwright.sandbox.run.process import RunFault
from kernelwright.tests.gpu.kernels import HONEST, INDEX, source
from kernelwright.traces.records import Check, Status
from kernelwright.verifier.clock.clocks import Clocks, checks
from kernelwright.verifier.truth.gates import first_failure

if TYPE_CHECKING:
    from .conftest import Bench


def failed(found: list[Check]) -> list[str]:
    return [check.name for check in found if not check.passed]


def test_an_honest_kernel_is_right_in_each_jail(jailed: Bench, honest: str) -> None:
    assert failed(jailed.checks(honest)) == []


def test_an_honest_kernel_is_right_on_every_shape_and_family(bench: Bench, honest: str) -> None:
    shapes = itertools.islice(bench.problem.variations(bench.structure, bench.rng), 6)
    for structure in (bench.structure, *shapes):
        bench.structure = structure
        with bench.side(honest) as side:
            for family in (*bench.problem.families[:3], Family.NORMAL):
                found = side.answer(bench.item(family), side.slots[0])
                assert first_failure(found) is None, structure.axes


def test_what_is_not_written_keeps_its_poison(bench: Bench) -> None:
    found = bench.checks(source(INDEX + "if (i == 0) y[0] = gelu(x[0] + bias[0]);"))
    assert any(
        "poison" in check.detail or "written" in check.detail for check in found if not check.passed
    )


@pytest.mark.parametrize("where", ["y[-1]", "y[(long)M * N]"])
def test_a_write_beside_an_output_is_seen(bench: Bench, where: str) -> None:
    body = (
        INDEX + f"if (i < (long)M * N) y[i] = gelu(x[i] + bias[i % N]);\nif (i == 0) {where} = 1;"
    )
    assert "guard bands" in failed(bench.checks(source(body)))


def test_a_write_to_an_input_is_seen(bench: Bench) -> None:
    body = INDEX + "if (i == 0) ((float*)x)[3] += 1.0f;\n"
    body += "if (i < (long)M * N) y[i] = gelu(x[i] + bias[i % N]);"
    with pytest.raises(RunFault, match="wrote to an input: x") as found:
        bench.checks(source(body))
    assert found.value.status is Status.CRASHED


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("y[(1ll << 44) + threadIdx.x] = 1.0f;", "ILLEGAL_ADDRESS"),
        ("*(double*)((char*)y + 4) = 1.0;", "MISALIGNED_ADDRESS"),
        ("__trap();", "CUDA_ERROR_"),
    ],
)
def test_a_kernel_that_faults_is_crashed(bench: Bench, body: str, words: str) -> None:
    with pytest.raises(RunFault, match=words) as found:
        bench.checks(source(body))
    assert found.value.status is Status.CRASHED


def test_much_dynamic_shared_memory_is_opted_in(bench: Bench, device: nvml.Device) -> None:
    bytes_asked = architecture(device.architecture).shared_per_block - 1024
    if bytes_asked <= 48 << 10:
        pytest.skip(f"{device.architecture} has no more than 48 KB")
    body = f"extern __shared__ float s[];\n{INDEX}"
    body += f"const int at = {bytes_asked // 4} - 1 - threadIdx.x;\n"
    body += "s[at] = i < (long)M * N ? gelu(x[i] + bias[i % N]) : 0.0f;\n__syncthreads();\n"
    body += "if (i < (long)M * N) y[i] = s[at];"
    assert failed(bench.checks(source(body, shared_bytes=bytes_asked))) == []


def test_clusters_are_launched(bench: Bench, device: nvml.Device) -> None:
    if architecture(device.architecture).max_cluster < 2:
        pytest.skip(f"{device.architecture} has no clusters")
    body = 'unsigned size; asm volatile("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(size));\n'
    body += INDEX + "if (i < (long)M * N) y[i] = size == 2 ? gelu(x[i] + bias[i % N]) : 0.0f;"
    grid = '["2 * cdiv(M * N, 512)"]'
    assert failed(bench.checks(source(body, grid=grid, cluster="[2, 1, 1]"))) == []


def test_work_buffers_and_zeros_between_launches(bench: Bench) -> None:
    text = """/*---
[[launch]]
zero = "total"
[[launch]]
kernel = "k"
grid = ["cdiv(M * N, 256)"]
block = [256]
args = ["M", "N", "x", "bias", "total"]
[[launch]]
kernel = "finish"
grid = ["cdiv(M * N, 256)"]
block = [256]
args = ["M", "N", "total", "y"]
[scratch.total]
shape = ["M", "N"]
dtype = "float32"
---*/
"""
    body = source(INDEX + "if (i < (long)M * N) y[i] += gelu(x[i] + bias[i % N]);")
    text += body.partition("---*/\n")[2]
    text += """extern "C" __global__ void finish(int M, int N, const float* total, float* y) {
    const long i = (long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < (long)M * N) y[i] = total[i];
}
"""
    assert failed(bench.checks(text, calls=3)) == []


WAITS = (
    INDEX
    + """
unsigned long long start, now;
asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)); while (now - start < 20000000ull);
if (i < (long)M * N) y[i] = gelu(x[i] + bias[i % N]);
"""
)


def test_all_clocks_see_a_kernel_that_waits(bench: Bench) -> None:
    with bench.side(source(WAITS, grid="[1]", block="[32]")) as side:
        slot = side.slots[0]
        assert bench.runner is not None
        timed = bench.runner.call(slot.index, timeout_s=30.0)
    # The device's nanosecond timer advances in steps of up to a microsecond on some devices.
    assert timed.claimed_ns > 19_000_000
    assert timed.host_ns > 19_000_000
    assert timed.wall_ns > 15_000_000


def test_the_referees_clock_bears_out_the_events(large: Bench, honest: str) -> None:
    with large.side(honest) as side:
        large_items = [large.item() for _ in range(2)]
        for _ in range(3):
            side.take(large_items, 0)
        side.clocks = Clocks()
        for _ in range(12):
            side.take(large_items, 0)
        found = checks(side.clocks, 2)
    assert [check.name for check in found if not check.passed] == []


LATENCY = """
if (threadIdx.x || blockIdx.x) return;
int next = 0;
for (int pass = 0; pass < 2; ++pass)
    for (int line = 0; line < 64; ++line) {
        const float* at = x + line * 16384 + next;
        const long long start = clock64();
        float value;
        asm volatile("ld.global.cg.f32 %0, [%1];" : "=f"(value) : "l"(at) : "memory");
        next = value > 1e30f;
        const long long end = clock64() + next;
        y[64 * pass + line] = (float)(end - start);
    }
"""
PIN = """
for (int line = 0; line < 64; ++line)
    asm volatile("prefetch.global.L2::evict_last [%0];" ::"l"(x + line * 16384));
"""


@pytest.mark.parametrize("pin", ["", PIN], ids=["plain", "evict_last"])
def test_inputs_are_not_in_the_cache_when_a_call_begins(
    large: Bench, device: nvml.Device, pin: str
) -> None:
    """64 lines of memory, each loaded twice: the first time from memory, then from the L2 cache."""
    if pin and device.capability < 80:
        pytest.skip("evict_last came with 8.0")
    found = large.outputs(source(LATENCY + pin, grid="[1]", block="[32]"), calls=3).reshape(-1)
    cold, warm = np.median(found[:64]), np.median(found[64:128])
    assert cold > 1.25 * warm, f"{cold:.0f} cycles at first, {warm:.0f} from the cache"


def test_a_graph_computes_the_same(bench: Bench, honest: str) -> None:
    with bench.side(honest, slots=8) as side:
        items = [bench.item() for _ in side.slots]
        for slot, item in zip(side.slots, items, strict=True):
            for name, array in item.inputs.items():
                slot.inputs[name][...] = array
        assert bench.runner is not None
        timed = bench.runner.replay(0, len(side.slots), timeout_s=30.0)
        assert timed.claimed_ns > 1
        for slot, item in zip(side.slots, items, strict=True):
            for name, expected in item.expected.items():
                np.testing.assert_allclose(slot.outputs[name], expected.value, rtol=1e-4, atol=1e-5)


def test_a_hang_is_ended_and_the_device_is_well_afterwards(bench: Bench, leased: object) -> None:
    # Of a loop over a volatile variable of its own nothing is left by some compilers.
    body = "while (((volatile float*)y)[0] != 12345.0f) {}"
    with bench.side(source(body)) as side:
        runner, index = bench.runner, side.slots[0].index
        assert runner is not None
        with pytest.raises(RunFault) as found:
            runner.call(index, timeout_s=3.0)
    # A display's watchdog may end it first.
    assert found.value.status is Status.TIMED_OUT
    health = leased.recover(  # type: ignore[attr-defined]
        lambda _: probe(bench.workshop, bench.way), "a kernel hung"
    )
    assert health.is_well, health.reason
    assert failed(bench.checks(HONEST)) == []
