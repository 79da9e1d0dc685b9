"""Triton rounds a product of two halves to a half: skeletons widen what they load before."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.dtypes import dtype_of
from kernelwright.kernelbench.languages import TRITON
from kernelwright.kernelbench.policies import HALVES, name_in
from kernelwright.kernelbench.problem import Problem
from kernelwright.kernelbench.skeleton import skeleton

SHORT = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32"}
TILE = 32
"""Of every constant of a plan: types do not depend on it, and tl.dot of int8 takes no less."""
ROUNDED = re.compile(r" = (?:arith|math)\.\w*f\w*\b.* : (?:tensor<[\dx]+)?b?f16\b(?!.* to )")
"""Arithmetic in Triton's own code. tt.dot of halves, with sums in float32, is exact."""


def compile_to_ir(problem: Problem, folder: Path) -> str:
    """The skeleton in Triton's own code, as for a GPU of NVIDIA's; no assembler and no GPU."""
    from triton._C.libtriton import ir
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, make_backend

    target = GPUTarget("cuda", 90, 32)
    backend: Any = make_backend(target)
    file = folder / f"{problem.name}.py"
    file.write_text(skeleton(problem, TRITON), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(problem.name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernel = getattr(module, f"{problem.name}_kernel")
    signature = dict.fromkeys(problem.axes, "i32")
    for tensor in problem.tensors:
        dtype = dtype_of(tensor.dtype)
        width = f"{'i' if dtype.name.startswith('int') else 'u'}{dtype.bits}"
        signature[f"{tensor.name}_ptr"] = f"*{SHORT.get(dtype.name, width)}"
    constants = {name: TILE for name in kernel.arg_names if name not in signature}
    signature |= dict.fromkeys(constants, "constexpr")
    source: Any = ASTSource(kernel, signature, constants)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    options = backend.parse_options({})
    made = (backend.get_codegen_implementation(options), backend.get_module_map(), context)
    return str(source.make_ir(target, options, *made))


@pytest.mark.parametrize("policy", HALVES)
def test_no_triton_skeleton_computes_in_halves(
    policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")  # it warns where nothing is said
    pytest.importorskip("triton")
    rounded = {}
    for base in registry.problems():
        if policy in base.policies:
            problem = registry.get(name_in(base.name, policy))
            lines = compile_to_ir(problem, tmp_path).splitlines()
            if found := [line.strip() for line in lines if ROUNDED.search(line)]:
                rounded[problem.name] = found
    assert rounded == {}
