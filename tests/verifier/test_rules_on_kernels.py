"""The offline Judge's rules on real kernels in emulation: each speaks on the one that has its
fault, and not on the same kernel without it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from kernelwright.agents.brains.gpu_rules import TABLE
from kernelwright.agents.brains.rules import RuleJudge
from kernelwright.agents.prompting.evidence import Evidence
from kernelwright.agents.roles import Member, Situation
from kernelwright.errors import PrerequisiteError
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.packs import workload_of
from kernelwright.sandbox.builders import toolchain
from kernelwright.tests.agents.played import verdict_with
from kernelwright.traces.records import Depth, Profile, Status
from kernelwright.verifier.request import Order, Task
from kernelwright.verifier.stands import emulated_looks
from kernelwright.verifier.stands.cuda_candidate import CudaCandidate
from kernelwright.verifier.stands.emulated import EmulatedStand
from kernelwright.verifier.stands.opening import open_stand
from kernelwright.verifier.stands.stand import Stand
from kernelwright.verifier.stands.verdict_draft import Draft

PROBLEM, ROWS, COLUMNS = "bias_gelu", 1536, 256
GELU = """
__device__ float gelu(float v) { return 0.5f * v * (1.0f + erff(v * 0.70710678118654752f)); }
"""


def kernel(
    body: str,
    *,
    grid: str = "cdiv(M * N, 256)",
    block: int = 256,
    scratch: str = "",
    before: str = "",
    launches: int = 1,
    bounds: str = "",
) -> str:
    """A whole candidate whose threads run a body; `i` is the number of a thread."""
    more = f'\n[scratch.{scratch}]\nshape = [1]\ndtype = "float32"\n' if scratch else ""
    zero = f'[[launch]]\nzero = "{scratch}"\n\n' if scratch else ""
    named = f', "{scratch}"' if scratch else ""
    taken = f", float* {scratch}" if scratch else ""
    one = """[[launch]]
kernel = "gelu_kernel"
grid = ["{grid}"]
block = [{block}]
args = ["M", "N", "x", "bias", "y", "{part}"{named}]
"""
    said = "\n".join(
        one.format(grid=grid, block=block, part=part, named=named) for part in range(launches)
    )
    return f"""/*---
{zero}{said}{more}---*/
{GELU}
extern "C" __global__ {bounds} void gelu_kernel(int M, int N, const float* __restrict__ x,
    const float* __restrict__ bias, float* __restrict__ y, int part{taken}) {{
    const long i = (long)blockIdx.x * blockDim.x + threadIdx.x;
    {before}
    {body}
}}
"""


PLAIN = "if (i < (long)M * N) y[i] = gelu(x[i] + bias[i % N]);"
WIDE = """
    if (4 * i < (long)M * N) {
        const float4 v = reinterpret_cast<const float4*>(x)[i];
        const float4 b = reinterpret_cast<const float4*>(bias)[i % (N / 4)];
        reinterpret_cast<float4*>(y)[i] =
            make_float4(gelu(v.x + b.x), gelu(v.y + b.y), gelu(v.z + b.z), gelu(v.w + b.w));
    }"""
GOOD = kernel(WIDE, grid="cdiv(M * N, 1024)")
ACROSS = "const long at = (i % M) * N + i / M;"
THROUGH_SHARED = """
    __shared__ float tile[32 * STRIDE];
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32;
    for (int turn = 0; turn < 4; ++turn) {
        const long at = (long)blockIdx.x * 1024 + turn * 256 + threadIdx.x;
        tile[lane * STRIDE + row + 8 * turn] = at < (long)M * N ? x[at] : 0.0f;
    }
    __syncthreads();
    for (int turn = 0; turn < 4; ++turn) {
        const long at = (long)blockIdx.x * 1024 + turn * 256 + threadIdx.x;
        if (at < (long)M * N) y[at] = gelu(tile[lane * STRIDE + row + 8 * turn] + bias[at % N]);
    }"""
UNEVEN = """
    const long all = (long)M * N, warp = i / 32, lane = i % 32;
    const long warps = (long)gridDim.x * blockDim.x / 32, share = all / FIRST;
    const long begin = warp == 0 ? 0 : share + (all - share) * (warp - 1) / (warps - 1);
    const long end = warp == 0 ? share : share + (all - share) * warp / (warps - 1);
    for (long at = begin + lane; at < end; at += 32) y[at] = gelu(x[at] + bias[at % N]);"""
SHARED_GRID = "cdiv(M * N, 1024)"

KERNELS: dict[str, tuple[str, str]] = {
    "blocks smaller than a warp": (kernel(PLAIN, grid="M * N", block=1), GOOD),
    "uncoalesced global loads": (
        kernel(f"{ACROSS} if (i < (long)M * N) y[at] = gelu(x[at] + bias[at % N]);"),
        GOOD,
    ),
    "uncoalesced global stores": (
        kernel(f"{ACROSS} if (i < (long)M * N) y[at] = gelu(__ldg(x + at) + bias[at % N]);"),
        kernel(PLAIN),
    ),
    "shared-memory bank conflicts": (
        kernel(THROUGH_SHARED.replace("STRIDE", "32"), grid=SHARED_GRID),
        kernel(THROUGH_SHARED.replace("STRIDE", "33"), grid=SHARED_GRID),
    ),
    "contended atomics": (
        kernel(PLAIN, scratch="done", before="if (i < (long)M * N) atomicAdd(done, 1.0f);"),
        kernel(
            PLAIN,
            scratch="done",
            before="if (threadIdx.x == 0 && blockIdx.x % 64 == 0) atomicAdd(done, 1.0f);",
        ),
    ),
    "launches, not kernels": (
        kernel(
            "const long at = i + part * (((long)M * N + 7) / 8);"
            "if (at < (long)M * N) y[at] = gelu(x[at] + bias[at % N]);",
            grid="cdiv(M * N, 2048)",
            launches=8,
        ),
        GOOD,
    ),
    "load imbalance": (
        kernel(UNEVEN.replace("FIRST", "8"), grid="132"),
        kernel(UNEVEN.replace("FIRST", "(warps)"), grid="132"),
    ),
    "too few blocks": (
        kernel(
            "for (long at = i; at < (long)M * N; at += 2048) y[at] = gelu(x[at] + bias[at % N]);",
            grid="8",
        ),
        GOOD,
    ),
    "a last wave that is mostly empty": (
        kernel(PLAIN, grid="max(cdiv(M * N, 256), 1200)"),
        kernel(PLAIN, grid="max(cdiv(M * N, 256), 2000)"),
    ),
    "narrow loads": (kernel(PLAIN, grid="max(cdiv(M * N, 256), 2000)"), GOOD),
}
"""Bottleneck, a kernel that has it, and a kernel that does the same without."""


@pytest.fixture(scope="module")
def stand(shared_cache: Path) -> Iterator[Stand]:
    problem = registry.get(PROBLEM)
    task = Task(
        problem=PROBLEM,
        workload=workload_of(problem, axes=[f"M={ROWS},N={COLUMNS}"]),
        target="sm_90",
        languages=("cuda",),
        cache_dir=str(shared_cache),
    )
    try:
        toolchain.find_nvrtc()
        toolchain.find_nvdisasm()
        opened = open_stand(task)
    except PrerequisiteError as error:
        pytest.skip(str(error))
    if not isinstance(opened, EmulatedStand):
        pytest.skip("this machine has the device")
    yield opened
    opened.close()


@pytest.fixture
def look(stand: Stand) -> Callable[[str], Member]:
    def at(source: str) -> Member:
        assert isinstance(stand, EmulatedStand)
        draft = Draft(
            Order(source=source, language="cuda", protocol=Depth.SCREEN), stand.session, b"x"
        )
        made = stand.tools.build("cuda", source, 1)
        assert isinstance(made, CudaCandidate)
        rng = np.random.default_rng(1)
        report = emulated_looks.look_for_races(draft, made, rng)
        profile: Profile = emulated_looks.profile_emulated(draft, made, report, rng)
        verdict = verdict_with(1.0).model_copy(
            update={
                "status": Status.SCREENED,
                "measurements": (),
                "emulated": True,
                "target": "sm_90",
                "profile": profile,
            }
        )
        return Member("c", 1, source, "cuda", "model", {}, verdict)

    return at


def rules_that_speak(member: Member) -> list[str]:
    situation = Situation(
        problem=registry.get(PROBLEM), target="sm_90", language="cuda", facts={}, round=1, seed=0
    )
    evidence = Evidence(member, situation, {})
    return [rule.bottleneck for rule in TABLE if rule(evidence)]


@pytest.mark.slow
@pytest.mark.parametrize("bottleneck", KERNELS)
def test_a_rule_speaks_on_the_kernel_that_has_its_fault_and_on_no_other(
    look: Callable[[str], Member], bottleneck: str
) -> None:
    faulty, sound = map(look, KERNELS[bottleneck])
    assert bottleneck in rules_that_speak(faulty)
    assert bottleneck not in rules_that_speak(sound)


@pytest.mark.slow
def test_one_thread_per_block_is_the_first_that_is_told(look: Callable[[str], Member]) -> None:
    situation = Situation(
        problem=registry.get(PROBLEM), target="sm_90", language="cuda", facts={}, round=1, seed=0
    )
    told = RuleJudge().diagnose(look(KERNELS["blocks smaller than a warp"][0]), situation)
    assert told.bottleneck == "blocks smaller than a warp"
    assert told.rests_on["block_threads"] == 1
