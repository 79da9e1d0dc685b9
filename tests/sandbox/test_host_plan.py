"""Launch plans from host code: what they say, and what is refused with its line."""

from __future__ import annotations

import pytest

from kernelwright.kernelbench import registry
from kernelwright.sandbox.front_matter import read_comment
from kernelwright.sandbox.host_plan.convert import Converted, convert, is_published_form
from kernelwright.sandbox.plan.faults import PlanFault

KERNEL = """
#define THREADS 256
__global__ void f(const float* x, float* y, int M, int N) { y[blockIdx.x * N + threadIdx.x] = 1; }
__global__ void g(const float* x, float* y, int M, int N) { y[blockIdx.x * N + threadIdx.x] = 1; }
"""
HEAD = KERNEL + "void launch(const float* x, float* y, int M, int N) {\n"


def plan_of(body: str) -> dict[str, object]:
    found = convert(f"{HEAD}{body}\n}}\n", registry.get("softmax"))
    assert isinstance(found, Converted), found
    return read_comment(found.text).facts


def launches_of(body: str) -> list[dict[str, object]]:
    found = plan_of(body)["launch"]
    assert isinstance(found, list)
    return found


def refusal_of(body: str) -> PlanFault:
    found = convert(f"{HEAD}{body}\n}}\n", registry.get("softmax"))
    assert isinstance(found, PlanFault), found
    return found


@pytest.mark.parametrize(
    ("written", "grid"),
    [
        ("(N + THREADS - 1) / THREADS", ["(N + THREADS - 1) // THREADS"]),
        ("dim3((N + 31) / 32, M)", ["(N + 31) // 32", "M"]),
        ("(int)ceil((float)N / THREADS)", ["cdiv(N, THREADS)"]),
        ("std::min(M, 65535)", ["min(M, 65535)"]),
        ("M < 4 ? 1 : M / 4", ["1 if M < 4 else M // 4"]),
        ("(M * N) >> 5", ["M * N // 32"]),
        ("M & ~31", ["M // 32 * 32"]),
        ("static_cast<unsigned int>(M)", ["M"]),
    ],
)
def test_sizes_are_said_in_the_plans_words(written: str, grid: list[str]) -> None:
    (launch,) = launches_of(f"f<<<{written}, THREADS>>>(x, y, M, N);")
    assert launch["grid"] == grid
    assert launch["args"] == ["x", "y", "M", "N"]


def test_named_numbers_that_shape_a_launch_are_knobs_with_what_else_they_may_be() -> None:
    facts = plan_of("const int rows = 4;\n dim3 block(32, rows);\n f<<<M, block>>>(x, y, M, N);")
    assert facts["knobs"] == {"rows": {"value": 4, "try": [1, 2, 4, 8, 16]}}


def test_branches_on_sizes_become_conditions_and_the_rest_behind_a_return_too() -> None:
    body = """
    if (M == 0) return;
    int threads = 64;
    if (N > 1024) threads = 512;
    if (N % 4 == 0) { f<<<M, threads>>>(x, y, M, N); } else { g<<<M, threads>>>(x, y, M, N); }
    """
    one, other = launches_of(body)
    assert one["when"] == "(not M == 0) and (N % 4 == 0)"
    assert other["when"] == "(not M == 0) and (not N % 4 == 0)"
    assert one["block"] == ["512 if N > 1024 else threads"]


def test_memory_of_the_launcher_is_scratch_and_what_is_set_to_zero_is_said() -> None:
    body = """
    float* part;
    cudaMalloc(&part, M * N * sizeof(float));
    cudaMemset(part, 0, M * N * sizeof(float));
    f<<<M, 256>>>(x, part, M, N);
    g<<<M, 256>>>(part, y, M, N);
    cudaFree(part);
    """
    facts = plan_of(body)
    zero, first, second = launches_of(body)
    assert zero == {"zero": "part"}
    assert (first["args"], second["args"]) == (["x", "part", "M", "N"], ["part", "y", "M", "N"])
    assert facts["scratch"] == {"part": {"shape": ["M * N"], "dtype": "float32"}}


def test_a_buffer_sized_by_a_named_number_follows_it() -> None:
    body = """
    const int parts = 8;
    float* part;
    cudaMalloc(&part, M * parts * sizeof(float));
    f<<<dim3(M, parts), 256>>>(x, part, M, N);
    g<<<M, WIDTH>>>(part, y, M, N);
    """
    facts = plan_of(body.replace("WIDTH", "256"))
    assert facts["scratch"] == {"part": {"shape": ["M * parts"], "dtype": "float32"}}
    local = body.replace("dim3(M, parts)", "M").replace("WIDTH", "256")
    assert plan_of(local)["scratch"] == {"part": {"shape": ["M * 8"], "dtype": "float32"}}


def test_a_loop_over_numbers_is_unrolled_and_one_over_sizes_is_refused_with_its_line() -> None:
    body = "for (int i = 0; i < 3; ++i) f<<<M, 256>>>(x, y, M, N);"
    assert len(launches_of(body)) == 3
    found = refusal_of("for (int i = 0; i < M; ++i)\n f<<<M, 256>>>(x, y, M, N);")
    assert "launches in a loop whose turns follow from sizes" in found.reason
    assert found.line == HEAD.count("\n") + 1


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("f<<<props.multiProcessorCount, 256>>>(x, y, M, N);", "grid or block"),
        ("f<<<M, 256>>>(x, y, M, unknown);", "the argument 'unknown' cannot be told"),
        ("if (lucky()) f<<<M, 256>>>(x, y, M, N);", "the condition of a launch"),
        ("cudaMemset(y, 1, 4); f<<<M, 256>>>(x, y, M, N);", "another value than zero"),
    ],
)
def test_what_no_plan_can_hold_is_refused(body: str, words: str) -> None:
    assert words in refusal_of(body).reason


MODULE = '''
import torch
from torch.utils.cpp_extension import load_inline

source = r"""
{source}
torch::Tensor launch(torch::Tensor x) {{
  auto y = torch::empty_like(x);
  f<<<x.size(0), 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(0), x.size(1));
  return y;
}}
"""
ext = load_inline(name="ext", cpp_sources="", cuda_sources=source, functions=["launch"])


class ModelNew(torch.nn.Module):
    def forward(self, x):
        {forward}
'''


def test_a_module_is_walked_to_its_inline_source() -> None:
    text = MODULE.format(source=KERNEL, forward="return ext.launch(x.contiguous())")
    found = convert(text, registry.get("softmax"))
    assert isinstance(found, Converted), found
    (launch,) = read_comment(found.text).facts["launch"]
    assert launch["grid"] == ["M"]
    assert launch["args"] == ["x", "y", "M", "N"]


def test_what_computes_in_torch_beside_the_kernels_is_refused_with_its_line() -> None:
    text = MODULE.format(source=KERNEL, forward="return ext.launch(torch.relu(x))")
    found = convert(text, registry.get("softmax"))
    assert isinstance(found, PlanFault)
    assert "'torch.relu(x)' computes outside the kernels" in found.reason
    assert found.line == text[: text.index("torch.relu")].count("\n") + 1


def test_a_candidate_with_a_plan_is_no_published_form() -> None:
    assert is_published_form(KERNEL + "void h() { f<<<1, 1>>>(); }")
    assert not is_published_form("/*---\n---*/\n" + KERNEL)
    assert not is_published_form(KERNEL)


def test_what_has_no_end_ends() -> None:
    doubled = "".join(f"#define A{n} (A{n + 1} + A{n + 1})\n" for n in range(40))
    text = f"{doubled}#define A40 1\n{HEAD}f<<<A0, 256>>>(x, y, M, N);\n}}\n"
    found = convert(text, registry.get("softmax"))
    assert isinstance(found, PlanFault)
    assert "too many steps" in found.reason
    looped = (
        "for (int a = 0; a < 60; ++a) for (int b = 0; b < 60; ++b) for (int c = 0; c < 60; ++c)"
    )
    assert "too many steps" in refusal_of(f"{looped} f<<<M, 256>>>(x, y, M, N);").reason
    deep = "(" * 5000 + "M" + ")" * 5000
    assert isinstance(
        convert(f"{HEAD}f<<<{deep}, 256>>>(x, y, M, N);\n}}", registry.get("softmax")), PlanFault
    )


@pytest.mark.parametrize("cut", range(0, 900, 37))
def test_no_part_of_a_file_breaks_the_reader(cut: int) -> None:
    text = MODULE.format(source=KERNEL, forward="return ext.launch(x)")[: -cut or None]
    assert isinstance(convert(text, registry.get("softmax")), Converted | PlanFault)
    cuda = (HEAD + "f<<<M, THREADS>>>(x, y, M, N); }" + "}" * (cut % 3))[cut // 2 :]
    assert isinstance(convert(cuda, registry.get("softmax")), Converted | PlanFault)
