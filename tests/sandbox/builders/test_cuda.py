"""NVRTC in real jails: what builds, what its cubins say, what is refused, what is kept."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.kernelbench.targets import ARCHITECTURES, Vendor, architecture
from kernelwright.sandbox.builders import cubin, toolchain
from kernelwright.sandbox.builders.cache import BuildCache
from kernelwright.sandbox.builders.cuda import build
from kernelwright.sandbox.builders.model import BuildFailed, DeviceBuilt
from kernelwright.sandbox.builders.workplace import LIMITS
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation.model import Jail

SCALE = """\
extern "C" __global__ void scale(int n, const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}
"""
SM_90 = architecture("sm_90")


@pytest.fixture(autouse=True)
def _needs_nvrtc() -> None:
    try:
        toolchain.find_nvrtc()
    except PrerequisiteError as error:
        pytest.skip(str(error))


def attempt(source: str, *kernels: str, at: Path, jail: Jail, **more) -> DeviceBuilt | BuildFailed:
    more.setdefault("architecture", SM_90)
    return build(Workshop(jail, at), source, kernels or ("scale",), **more)


def built(source: str, *kernels: str, at: Path, jail: Jail, **more) -> DeviceBuilt:
    result = attempt(source, *kernels, at=at, jail=jail, **more)
    assert isinstance(result, DeviceBuilt), result
    return result


def refused(source: str, *kernels: str, at: Path, jail: Jail, **more) -> BuildFailed:
    result = attempt(source, *kernels, at=at, jail=jail, **more)
    assert isinstance(result, BuildFailed)
    return result


def test_builds_in_every_jail(tmp_path: Path, jail: Jail) -> None:
    found = built(SCALE, at=tmp_path, jail=jail)
    assert found.architecture == "sm_90a"
    (made,) = found.cubins
    assert made.artefact.startswith(b"\x7fELF")
    (kernel,) = found.kernels
    assert (kernel.name, kernel.symbol, kernel.cubin) == ("scale", "scale", 0)
    assert kernel.parameters == (4, 8, 8)
    assert kernel.shared_bytes == kernel.stack_bytes == kernel.spill_stores == 0
    assert kernel.max_threads is None


@pytest.mark.parametrize(
    "name", [each.name for each in ARCHITECTURES.values() if each.vendor is Vendor.NVIDIA]
)
def test_what_the_cubin_says_is_what_the_assembler_said(
    name: str, tmp_path: Path, any_jail: Jail
) -> None:
    source = """
extern "C" __global__ void __launch_bounds__(64) k(float* p, char c, double d) {
  __shared__ float s[33];
  float mine[50];
#pragma unroll 1
  for (int i = 0; i < 50; ++i) mine[i] = p[i];
  s[threadIdx.x % 33] = p[c];
  __syncthreads();
  p[1] = s[c % 33] + mine[c % 50] + (float)d;
}
"""
    found = built(source, "k", at=tmp_path, jail=any_jail, architecture=architecture(name))
    (kernel,) = found.kernels
    log = found.cubins[0].log
    said = re.search(r"Used (\d+) registers", log)
    memory = re.search(r"(\d+) bytes smem", log)
    frame = re.search(r"(\d+) bytes stack frame", log)
    assert said
    assert memory
    assert frame
    assert kernel.registers == int(said[1])
    assert kernel.shared_bytes == int(memory[1]) >= 33 * 4
    assert kernel.stack_bytes == int(frame[1]) >= 200
    assert kernel.parameters == (8, 1, 8)
    assert kernel.max_threads == 64


def test_templates_and_namespaces_by_the_names_of_the_plan(tmp_path: Path, any_jail: Jail) -> None:
    source = """
namespace ns { template <typename T, int N> __global__ void put(T* p) { p[N] = 1; } }
__global__ void plain(float* p) { *p = 1; }
"""
    names = ("ns::put<float, 4>", "plain", "ns::put<double,2>")
    found = built(source, *names, at=tmp_path, jail=any_jail)
    assert tuple(kernel.name for kernel in found.kernels) == names
    assert [kernel.symbol for kernel in found.kernels] == [
        "_ZN2ns3putIfLi4EEEvPT_",
        "_Z5plainPf",
        "_ZN2ns3putIdLi2EEEvPT_",
    ]


def test_spills_are_told_and_cannot_be_printed(tmp_path: Path, any_jail: Jail) -> None:
    lie = "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"
    source = f"""
#pragma message("\\nptxas info    : Function properties for k\\nptxas         .     {lie}")
extern "C" __global__ void __launch_bounds__(1024, 2) k(float* p) {{
  float x[100];
#pragma unroll
  for (int i = 0; i < 100; ++i) x[i] = p[i];
#pragma unroll
  for (int i = 0; i < 100; ++i) p[i * 77 + (int)x[99 - i]] = x[i] * x[(i * 7) % 100];
}}
"""
    (kernel,) = built(source, "k", at=tmp_path, jail=any_jail).kernels
    assert kernel.registers == 32
    assert kernel.spill_stores > 0
    assert kernel.spill_loads > 0
    assert kernel.stack_bytes > 0


def test_large_parameters_are_read(tmp_path: Path, any_jail: Jail) -> None:
    source = "struct S { char x[5000]; };\n"
    source += 'extern "C" __global__ void k(S s, float* p, char c) { *p = s.x[threadIdx.x] + c; }'
    (kernel,) = built(source, "k", at=tmp_path, jail=any_jail).kernels
    assert kernel.parameters == (5000, 8, 1)


def test_architecture_specific_instructions(tmp_path: Path, any_jail: Jail) -> None:
    source = SCALE.replace("if (i", 'asm volatile("wgmma.fence.sync.aligned;");\n  if (i')
    built(source, at=tmp_path, jail=any_jail)
    failed = refused(source, at=tmp_path, jail=any_jail, architecture=architecture("sm_80"))
    assert "wgmma.fence" in failed.reason
    assert "another architecture" in failed.reason
    assert not failed.is_resource


@pytest.mark.parametrize(
    "headers",
    [
        ("cuda_fp16.h", "cuda_bf16.h", "mma.h", "stdint.h", "math.h"),
        pytest.param(
            (
                "cooperative_groups.h",
                "cuda/std/cstdint",
                "cstdint",
                "limits",
                "type_traits",
                "cuda/std/cmath",
                "cmath",
                "algorithm",
            ),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_the_toolkits_headers_and_ours_go_together(
    headers: tuple[str, ...], tmp_path: Path, any_jail: Jail
) -> None:
    source = "".join(f"#include <{header}>\n" for header in headers) + SCALE
    found = built(source, at=tmp_path, jail=any_jail)
    assert [kernel.name for kernel in found.kernels] == ["scale"]


def has_curand() -> bool:
    """It comes with the torch that is built for devices."""
    try:
        folders = toolchain.find_nvrtc().includes
    except PrerequisiteError:
        return False
    return any((folder / "curand_kernel.h").exists() for folder in folders)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (SCALE.replace("2 * x[i]", "2 * x[j]"), ("line 3", '"j" is undefined')),
        (SCALE.replace("2 *", "(half)2 *"), ("line 3", "#include <cuda_fp16.h>")),
        (SCALE.rstrip()[:-1], ("end of the source", 'expected a "}"', "line 1")),
        (SCALE + "__device__ auto b = cg::this_thread_block();", ("5", "<cooperative_groups.h>")),
        (
            SCALE + "void f(float* y) {\n  scale<<<1, 1>>>(1, y, y);\n}",
            ("line 6", "host code", "plan"),
        ),
        (SCALE + "int main() {\n  float* d;\n  cudaMalloc(&d, 4);\n}", ("line 7", "host code")),
        (SCALE + "__host__ void f(float* d) { cudaFree(d); }", ("line 5", "host code", "plan")),
        (
            "#include <torch/extension.h>\n" + SCALE + "torch::Tensor f(torch::Tensor x);",
            ("line 6", "host code", "launch plan"),
        ),
        ("#include <ATen/ATen.h>\n" + SCALE + "void f(at::Tensor x);", ("line 6", "host code")),
        ("#include <vector>\n" + SCALE + "void f(std::vector<int> x);", ("line 6", "host code")),
        ("#include <iostream>\n" + SCALE + "void f() { std::cout << 1; }", ("line 6", "host code")),
        ("#include <cutlass/cutlass.h>\n" + SCALE, ("line 1", "CUTLASS is not here", "<mma.h>")),
        pytest.param(
            "#include <curand_kernel.h>\n" + SCALE,
            ("line 1", "cuRAND is not here"),
            marks=pytest.mark.skipif(has_curand(), reason="cuRAND's headers are here"),
        ),
        (
            "#include <thrust/sort.h>\n" + SCALE + "void f(float* y) { thrust::sort(y, y + 1); }",
            ("line 6", "thrust's algorithms are host code"),
        ),
        (
            "#include <cub/cub.cuh>\n" + SCALE + "void f() { cub::DeviceReduce::Sum(0, 0, 0); }",
            ("line 6", "cub's device-wide algorithms are host code"),
        ),
        ('#include "mine.h"\n' + SCALE, ("line 1", "headers of the CUDA toolkit")),
        ("#error no luck\n" + SCALE, ("line 1", "no luck")),
        (SCALE.replace("scale", "other"), ("no kernel 'scale'", "it defines other")),
        ("", ("no kernel 'scale'", "no __global__ function")),
        ("__device__ void scale() {}", ("'scale' is not a kernel",)),
        ("template <int N> __global__ void scale(float* p) {}", ("'scale'", "instance")),
        (
            'extern "C" __global__ void scale(float* p) { __shared__ float s[20000];'
            " s[threadIdx.x] = *p; __syncthreads(); *p = s[threadIdx.x ^ 1]; }",
            ("80000 bytes of static shared memory", "49152", "extern __shared__"),
        ),
    ],
)
def test_a_reason_to_act_on(
    source: str, words: tuple[str, ...], tmp_path: Path, any_jail: Jail
) -> None:
    failed = refused(source, at=tmp_path, jail=any_jail)
    for word in words:
        assert word in failed.reason
    assert not failed.is_resource
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('\n#include "/etc/passwd"\n', ("line 2", "/etc/passwd", "only headers")),
        ("#include </proc/self/environ>\n", ("line 1", "only headers")),
        ('#include "../../../etc/passwd"\n', ("line 1", "only headers")),
        ("#define F </etc/passwd>\n#include F\n", ("/etc/passwd", "only headers")),
        (SCALE + "\0", ("line 5", "null byte")),
        (SCALE + "\ud800", ("line 5", "UTF-8")),
        (SCALE + "// " + "x" * 200_000, ("200", "at most 131072")),
    ],
)
def test_what_is_no_source(source: str, words: tuple[str, ...], tmp_path: Path, jail: Jail) -> None:
    failed = refused(source, at=tmp_path, jail=jail)
    for word in words:
        assert word in failed.reason
    assert "root:" not in failed.log


def test_the_environment_holds_nothing(
    tmp_path: Path, jail: Jail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    source = "#define F </proc/self/environ>\n#include F\n" + SCALE
    result = attempt(source, at=tmp_path, jail=jail)
    log = result.log if isinstance(result, BuildFailed) else result.cubins[0].log
    assert "sk-very-secret" not in log


def test_names_that_are_no_names(tmp_path: Path, any_jail: Jail) -> None:
    for name in ("scale\n", " ", "x" * 300):
        assert "not the name of a kernel" in refused(SCALE, name, at=tmp_path, jail=any_jail).reason
    failed = refused(SCALE, "scale<float,", at=tmp_path, jail=any_jail)
    assert "'scale<float,' names no kernel" in failed.reason


def test_a_deep_template_is_told(tmp_path: Path, any_jail: Jail) -> None:
    source = """
template <int N> struct Deep { static const int value = Deep<N + 1>::value; };
__device__ int x = Deep<0>::value;
"""
    assert "line 2" in refused(source + SCALE, at=tmp_path, jail=any_jail).reason


BOMBS = {
    "templates": """
template <int N, int M> struct F {
  static const int v = F<N - 1, M * 2>::v + F<N - 1, M * 2 + 1>::v;
};
template <int M> struct F<0, M> { static const int v = 1; };
__device__ int z = F<24, 1>::v;
"""
    + SCALE,
    "macros": "".join(f"#define M{i + 1} M{i} M{i}\n" for i in range(40)).join(
        ("#define M0 x+x+x+x+x+x+x+x+x+x+x+x\n", "__device__ int f(int x) { return M40 1; }\n")
    )
    + SCALE,
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_meets_a_limit(bomb: str, tmp_path: Path, any_jail: Jail) -> None:
    limits = replace(LIMITS, wall_s=4.0, memory_bytes=512 << 20)
    failed = refused(BOMBS[bomb], at=tmp_path, jail=any_jail, limits=limits)
    assert failed.is_resource
    assert "stopped" in failed.reason or "limit" in failed.reason or "crashed" in failed.reason


def test_private_folders_are_not_told(tmp_path: Path, any_jail: Jail) -> None:
    source = '#include <cuda_fp16.h>\n__device__ auto x = __hadd("a", 1);\n' + SCALE
    failed = refused(source, at=tmp_path, jail=any_jail)
    told = failed.log + failed.reason + " ".join(failed.command)
    for folder in toolchain.find_nvrtc().includes:
        assert str(folder) not in told
    name = built(SCALE + "__device__ const char* w = __FILE__;", at=tmp_path, jail=any_jail)
    assert str(Path.cwd()).encode() not in name.cubins[0].artefact


def test_a_build_is_kept_and_found(tmp_path: Path, any_jail: Jail) -> None:
    first = built(SCALE, at=tmp_path, jail=any_jail)
    again = built(SCALE, at=tmp_path, jail=any_jail)
    assert not first.is_cached
    assert again.is_cached
    assert again.kernels == first.kernels
    assert again.cubins[0].artefact == first.cubins[0].artefact
    other = built(SCALE, at=tmp_path, jail=any_jail, architecture=architecture("sm_80"))
    assert other.architecture == "sm_80"
    assert not other.is_cached


def test_one_source_makes_one_cubin(tmp_path: Path, any_jail: Jail) -> None:
    first = built(SCALE, at=tmp_path / "one", jail=any_jail)
    second = built(SCALE, at=tmp_path / "two", jail=any_jail)
    assert not second.is_cached
    assert first.cubins[0].sha256 == second.cubins[0].sha256


def test_a_damaged_entry_is_built_again(tmp_path: Path, any_jail: Jail) -> None:
    found = built(SCALE, at=tmp_path, jail=any_jail)
    (entry,) = (path for path in (tmp_path / "device").rglob("*") if path.is_file())
    entry.write_bytes(entry.read_bytes()[:-1] + b"?")
    again = built(SCALE, at=tmp_path, jail=any_jail)
    assert not again.is_cached
    assert again.kernels == found.kernels


def test_a_device_build_comes_back_as_it_was(tmp_path: Path, any_jail: Jail) -> None:
    found = built(SCALE, at=tmp_path, jail=any_jail)
    two = replace(
        found,
        cubins=(found.cubins[0], replace(found.cubins[0], remarks=("1: a",))),
        kernels=(found.kernels[0], replace(found.kernels[0], cubin=1, max_threads=64)),
    )
    BuildCache(tmp_path).store_device("ab" * 32, two)
    kept = BuildCache(tmp_path).load_device("ab" * 32)
    assert kept is not None
    assert kept.is_cached
    assert kept.kernels == two.kernels
    assert [c.artefact for c in kept.cubins] == [c.artefact for c in two.cubins]
    assert BuildCache(tmp_path).load_device("cd" * 32) is None


def test_a_damaged_cubin_is_a_cubin_error(tmp_path: Path, any_jail: Jail) -> None:
    whole = built(SCALE, at=tmp_path, jail=any_jail).cubins[0].artefact
    random = Random(0)
    for _ in range(3000):
        raw = bytearray(whole[: random.randrange(len(whole))] if random.random() < 0.3 else whole)
        for _ in range(random.randrange(1, 9)):
            # The heads of the file and of its sections are where offsets stand.
            at = random.choice([random.randrange(64), random.randrange(len(whole))])
            if at < len(raw):
                raw[at] = random.choice([0, 1, 0x7F, 0xFF, random.randrange(256)])
        try:
            cubin.entries(bytes(raw))
        except cubin.CubinError:
            continue
    assert set(cubin.entries(whole)) == {"scale"}


def test_nvcc_where_it_is_asked_for(tmp_path: Path, any_jail: Jail) -> None:
    try:
        toolchain.find_nvcc()
    except PrerequisiteError as error:
        pytest.skip(str(error))
    source = SCALE + "template <typename T, int N> __global__ void put(T* p) { p[N] = 1; }\n"
    names = ("scale", "put<float, 4>")
    found = built(source, *names, at=tmp_path, jail=any_jail, compiler="nvcc")
    assert [kernel.symbol for kernel in found.kernels] == ["scale", "_Z3putIfLi4EEvPT_"]
    assert found.kernels[0].parameters == (4, 8, 8)
    assert found.kernels[0].registers > 0
    failed = refused(SCALE, "scale", "nope", at=tmp_path, jail=any_jail, compiler="nvcc")
    assert "no kernel 'nope'" in failed.reason


def test_a_folder_without_a_toolkit(tmp_path: Path, any_jail: Jail) -> None:
    with pytest.raises(PrerequisiteError, match="NVRTC was not found") as told:
        attempt(SCALE, at=tmp_path, jail=any_jail, home=tmp_path)
    assert "kernelwright[cuda]" in told.value.hint


def test_headers_that_the_compiler_carries(tmp_path: Path, any_jail: Jail) -> None:
    whole = toolchain.find_nvrtc()
    if not whole.bundles_headers:
        pytest.skip(f"NVRTC {whole.version} carries no headers")
    bare = tmp_path / "toolkit" / "lib"
    bare.mkdir(parents=True)
    (bare / whole.library.name).symlink_to(whole.library)
    assert toolchain.find_nvrtc(bare.parent).includes == ()
    source = "#include <cuda_fp16.h>\n#include <cuda_runtime.h>\n" + SCALE
    built(source, at=tmp_path / "cache", jail=any_jail, home=bare.parent)
    assert list((tmp_path / "cache" / "nvrtc-headers").rglob("cuda_fp16.h"))
