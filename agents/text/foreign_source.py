# SPDX-License-Identifier: Apache-2.0
"""What a foreign source is, what can be told of it unrun, and how it may be run as a candidate.

Pure functions on text. CUDA can only be read here. A PyTorch module is host code, which the referee
can hold against the problem as it stands: whether the source computes what is asked for is then a
verdict and not a hope.
"""

from __future__ import annotations

import ast
import re

from ...syntax import parse_python

_KERNEL = re.compile(r"__global__\s+(?:__launch_bounds__\([^)]*\)\s*)?void\s+(\w+)")
_TORCH = re.compile(r"^\s*(?:import torch\b|from torch\b)", re.M)
_FACTS = (
    (r"__syncthreads\s*\(", "barriers: split the kernel there into loops over a block's threads"),
    (r"__shared__", "arrays in shared memory"),
    (r"\batomic[A-Z]\w*\s*\(", "atomics: make them reductions, or OpenMP atomics"),
    (r"__shfl\w*\s*\(|__ballot\w*\s*\(|__reduce_\w+\s*\(", "warp operations: plain reductions"),
    (r"\bfloat4\b|\bfloat2\b|\bint4\b", "vector types: contiguous inner loops that vectorise"),
    (r"<<<", "launches"),
)
_CLASSES = ("ModelNew", "Model")
"""KernelBench's names, the candidate's first."""
_FUNCTIONS = ("run", "forward", "module_fn", "forward_fn")
"""Names of plain functions in KernelBench's functional form and in robust-kbench."""


def is_cuda(source: str) -> bool:
    """Whether it defines a CUDA kernel."""
    return bool(_KERNEL.search(source))


def is_torch(source: str) -> bool:
    """Whether it imports PyTorch."""
    return bool(_TORCH.search(source))


def facts(source: str) -> tuple[str, ...]:
    """What can be told of a CUDA source without running it."""
    kernels = _KERNEL.findall(source)
    if not kernels:
        return ()
    found = [f"the source's kernels: {', '.join(dict.fromkeys(kernels))}"]
    counts = [(len(re.findall(pattern, source)), meaning) for pattern, meaning in _FACTS]
    return (*found, *(f"{count} × {meaning}" for count, meaning in counts if count))


def as_module(source: str) -> str:
    """The PyTorch source as a candidate in Python; "" where nothing in it can be called.

    A class that is made with arguments of its own can only be found out by making it.
    """
    try:
        body = parse_python(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    classes = [each.name for each in body if isinstance(each, ast.ClassDef)]
    functions = [each.name for each in body if isinstance(each, ast.FunctionDef)]
    whole = source.rstrip("\n") + "\n"
    for name in _CLASSES:
        if name in classes:
            return whole if name == "ModelNew" else f"{whole}\n\nModelNew = {name}\n"
    for name in _FUNCTIONS:
        if name in functions:
            return (
                f"{whole}\n\nimport torch\n\n\nclass ModelNew(torch.nn.Module):\n"
                f"    def forward(self, *inputs):\n        return {name}(*inputs)\n"
            )
    return ""
