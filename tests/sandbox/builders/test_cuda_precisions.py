"""Tensor cores by inline PTX: compilers for devices take them; what the emulation says of them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.kernelbench.targets import architecture
from kernelwright.sandbox.builders import cuda, emulated, toolchain
from kernelwright.sandbox.builders.model import DeviceBuilt, Unsupported
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation.model import Jail

NO_TENSORS: Any = SimpleNamespace(axes={}, tensors=[])
GEMM = Path(__file__).parent.parent / "cuda_on_cpu" / "ptx_gemm.cu"

HOPPER = """\
#include <cuda_fp16.h>
#include <stdint.h>
__device__ inline uint64_t descriptor(const void* at) {
  return ((uint64_t)__cvta_generic_to_shared(at) & 0x3ffff) >> 4 | 1ull << 62;
}
extern "C" __global__ void k(const half* x, float* y) {
  __shared__ __align__(1024) half a[64 * 64];
  __shared__ uint64_t full;
  uint32_t bar = (uint32_t)__cvta_generic_to_shared(&full);
  uint32_t to = (uint32_t)__cvta_generic_to_shared(a);
  if (threadIdx.x == 0) {
    STATEMENT
  }
  __syncthreads();
  y[threadIdx.x] = a[threadIdx.x];
}
"""
STATEMENTS = {
    "mbarrier.init.shared::cta.b64": (
        'asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(bar));'
    ),
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes": (
        'asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes '
        '[%0], [%1], %2, [%3];" :: "r"(to), "l"(x), "r"(8192), "r"(bar) : "memory");'
    ),
    "wgmma.fence.sync.aligned": (
        'asm volatile("wgmma.fence.sync.aligned;\\n" ::: "memory");\n'
        "    uint64_t da = descriptor(a); float d[4] = {};\n"
        '    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, '
        '%4, 1, 1, 1, 0, 0;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(da));'
    ),
}


@pytest.fixture(params=["nvrtc", "nvcc"])
def compiler(request: pytest.FixtureRequest) -> str:
    try:
        toolchain.find_nvrtc() if request.param == "nvrtc" else toolchain.find_nvcc()
    except PrerequisiteError as error:
        pytest.skip(str(error))
    return str(request.param)


@pytest.mark.parametrize("name", ["sm_80", "sm_90"])
def test_a_published_product_builds_for_devices(
    compiler: str, name: str, shared_cache: Path, any_jail: Jail
) -> None:
    workshop = Workshop(any_jail, shared_cache)
    source = GEMM.read_text("utf-8")
    found = cuda.build(workshop, source, ("gemm",), architecture(name), compiler=compiler)
    assert isinstance(found, DeviceBuilt), found
    (kernel,) = found.kernels
    assert kernel.spill_stores == 0


@pytest.mark.parametrize("instruction", STATEMENTS)
def test_what_hopper_alone_has_builds_and_is_not_emulated(
    compiler: str, instruction: str, shared_cache: Path, any_jail: Jail
) -> None:
    workshop = Workshop(any_jail, shared_cache)
    source = HOPPER.replace("STATEMENT", STATEMENTS[instruction])
    found = cuda.build(workshop, source, ("k",), architecture("sm_90"), compiler=compiler)
    assert isinstance(found, DeviceBuilt), found
    on_cpu = emulated.build(workshop, source, NO_TENSORS, ("k",), architecture="sm_90")
    assert isinstance(on_cpu, Unsupported)
    assert on_cpu.reasons[0] == f"line 12: inline PTX: {instruction}"
