"""A plan written out as host code launches what `resolve` says, and its arithmetic is Python's."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.features import SPARSE_FEATURES
from kernelwright.kernelbench.recipe import Facts
from kernelwright.kernelbench.recipes.catalogue import recipes_for
from kernelwright.kernelbench.targets import architecture
from kernelwright.sandbox.front_matter import FilePlace
from kernelwright.sandbox.plan import Launches, Plan, parse, resolve
from kernelwright.sandbox.plan.grammar import parse_expression
from kernelwright.sandbox.plan.host_text import HELPERS, c_text, write_host_text
from kernelwright.sandbox.plan.model import ZERO_FILL, ArgumentKind
from kernelwright.tests.sampling import at_most

STUBS = """
#include <cstdio>
#include <cstring>
using cudaError_t = int; using cudaStream_t = void*;
enum { cudaSuccess = 0, cudaErrorInvalidConfiguration = 9 };
enum { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
struct dim3 {
  unsigned x, y, z;
  dim3(unsigned a, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
inline int cudaGetLastError() { return 0; }
inline int cudaFuncSetAttribute(const void*, int, int) { return 0; }
inline int cudaMemsetAsync(void* at, int, size_t bytes, void*) {
  std::printf("{\\"zero\\": %lld, \\"bytes\\": %lld}\\n", (long long)at, (long long)bytes);
  return 0;
}
using Address = kernelwright_plan::Address;
inline void tell(Address a) { std::printf(", [\\"at\\", %lld]", (long long)a.at); }
inline void tell(float v) { std::printf(", [\\"float\\", %.9g]", v); }
inline void tell(double v) { std::printf(", [\\"double\\", %.17g]", v); }
inline void tell(long long v) { std::printf(", [\\"integer\\", %lld]", v); }
template <typename... A>
void record(const char* kernel, dim3 g, dim3 b, size_t shared, A... given) {
  std::printf("{\\"kernel\\": \\"%s\\", \\"grid\\": [%u, %u, %u], \\"block\\": [%u, %u, %u], "
              "\\"shared\\": %lld, \\"args\\": [0",
              kernel, g.x, g.y, g.z, b.x, b.y, b.z, (long long)shared);
  (tell(given), ...);
  std::printf("]}\\n");
}
""".replace("\\\\", "\\")
LAUNCH = re.compile(r"^( *)(\S[^\n]*?)<<<(.*), kw_shared, kw_stream>>>\((.*)\);$", re.M)
FIRST, EACH = 1 << 20, 1 << 16
"""Addresses of the tensors, of which none is longer."""
SCRATCH = 1 << 40


def compiled(text: str, folder: Path) -> Path:
    source, program = folder / "it.cpp", folder / "it"
    source.write_text(text)
    subprocess.run(["g++", "-std=c++17", "-O0", "-w", str(source), "-o", str(program)], check=True)
    return program


def recipes() -> list[Any]:
    every = [each for name in registry.names() for each in recipes_for(name, "cuda")]
    return at_most(26, every)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", recipes(), ids=lambda each: f"{each.problem}-{each.family}")
def test_a_recipes_launches_are_those_of_its_plan(recipe: Any, tmp_path: Path) -> None:
    problem = registry.get(recipe.problem)
    plan = parse(recipe.render(recipe.first_knobs()), "cuda")
    assert isinstance(plan, Plan)
    host = write_host_text(plan, problem)
    functions = LAUNCH.sub(
        lambda m: f'{m[1]}record("{m[2]}", {m[3]}, kw_shared, {m[4]});', host.functions
    )
    assert "<<<" not in functions
    axes = {axis: 32 * (at + 3) + 5 for at, axis in enumerate(problem.axes)}
    axes |= {"nnz": 5 * axes["M"]} if "nnz" in axes else {}
    odd = resolve(plan, problem, axes, dict.fromkeys(SPARSE_FEATURES, 1.0), architecture("sm_90"))
    if not isinstance(odd, Launches):  # of an axis that is a choice these are no values
        axes = dict(problem.structure(problem.workload("tiny")).axes)
    found: Facts = {**axes, **dict.fromkeys(SPARSE_FEATURES, 0.0), "avg_row": 5.0, "max_row": 9.0}
    sizes = ", ".join([str(axes[axis]) for axis in host.axes])
    sizes += "".join(f", {found[name]!r}" for name in host.features)
    tensors = ", ".join(f"(void*){FIRST + at * EACH}LL" for at in range(len(problem.tensors)))
    main = (
        f"int main() {{ return {host.launch}({sizes}, {tensors}, (void*){SCRATCH}LL, nullptr) || "
        f"{host.scratch}({sizes}) < 0; }}\n"
    )
    program = compiled(f"{HELPERS}{STUBS}{functions}{main}", tmp_path)
    ran = subprocess.run([program], capture_output=True, text=True, check=True)
    said = [json.loads(line) for line in ran.stdout.splitlines()]
    expected = resolve(plan, problem, axes, dict(found), architecture("sm_90"))
    assert isinstance(expected, Launches), expected
    assert [told(each) for each in said] == [plain(each, expected) for each in expected.launches]


def told(said: dict[str, Any]) -> dict[str, Any]:
    if "zero" in said:
        return said
    return {**said, "args": said["args"][1:]}


def plain(launch: Any, of: Launches) -> dict[str, Any]:
    """A launch as the stubs tell it."""
    starts, at = [], SCRATCH
    for each in of.scratch:
        starts.append(at)
        size = int(np.prod(each.shape)) * np.dtype(each.dtype).itemsize
        at += -(-size // 256) * 256

    def argument(one: Any) -> list[Any]:
        if one.kind is ArgumentKind.TENSOR:
            return ["at", FIRST + one.value * EACH + one.offset]
        if one.kind is ArgumentKind.SCRATCH:
            return ["at", starts[one.value] + one.offset]
        if one.kind is ArgumentKind.INTEGER:
            return ["integer", one.value]
        width = np.uint32 if one.kind is ArgumentKind.FLOAT32 else np.uint64
        kind = "float" if width is np.uint32 else "double"
        number = np.array([one.value], width).view(np.float32 if kind == "float" else np.float64)
        return [kind, pytest.approx(float(number[0]))]

    if launch.kernel == ZERO_FILL:
        return {"zero": argument(launch.arguments[0])[1], "bytes": launch.arguments[1].value}
    return {
        "kernel": of.kernels[launch.kernel],
        "grid": list(launch.grid),
        "block": list(launch.block),
        "shared": launch.shared_bytes,
        "args": [argument(one) for one in launch.arguments],
    }


ARITHMETIC = (
    "M // N",
    "M % N",
    "-M // 3",
    "(0 - M) % 7",
    "cdiv(M, N) * 2 if avg_row < 3.5 else M - N",
    "min(M, N, 40) + max(3, N)",
    "next_pow2(M) - 1",
    "ceil(avg_row * 2) + floor(0 - avg_row)",
    "(M and N) + (M > 5 or N)",
    "1 if 2 < M <= 40 and not N == 3 else 0",
    "floor(avg_row // 0.3) + floor(avg_row % 0.7 * 100)",
)


@settings(max_examples=3, deadline=None)
@given(
    values=st.lists(
        st.tuples(st.integers(1, 200), st.integers(1, 50), st.floats(0.0, 40.0)),
        min_size=10,
        max_size=10,
    )
)
def test_expressions_keep_the_meaning_that_python_gives_them(
    values: list[tuple[int, int, float]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    nodes = [parse_expression(text, lambda at: FilePlace(1, at)) for text in ARITHMETIC]
    lines = "".join(f'  std::printf("%lld ", (long long)({c_text(e.node)}));\n' for e in nodes)
    calls = "".join(f"  print({m}LL, {n}LL, {rate!r});\n" for m, n, rate in values)
    main = f"void print(long long M, long long N, double avg_row) {{\n{lines}}}\n"
    text = f"#include <cstdio>\n{HELPERS}{main}int main() {{\n{calls}}}\n"
    program = compiled(text, tmp_path_factory.mktemp("arithmetic"))
    ran = subprocess.run([program], capture_output=True, text=True, check=True)
    expected = [
        int(each.evaluate({"M": m, "N": n, "avg_row": rate}))
        for m, n, rate in values
        for each in nodes
    ]
    assert [int(word) for word in ran.stdout.split()] == expected


def test_a_knob_is_a_number_where_the_source_has_a_macro_of_its_name() -> None:
    node = parse_expression("cdiv(M, ROWS)", lambda at: FilePlace(1, at)).node
    assert c_text(node, {"ROWS": 4}) == "kernelwright_plan::cdiv(M, 4LL)"
