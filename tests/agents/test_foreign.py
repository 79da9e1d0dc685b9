"""What foreign sources are, and how a PyTorch module becomes a candidate."""

from __future__ import annotations

import pytest

from kernelwright.agents.text.foreign_source import as_module, facts, is_cuda, is_torch

CUDA = "__global__ void doubled(float* y) { __shared__ float t[32]; __syncthreads(); }\n"


def test_facts_count_what_must_be_rewritten() -> None:
    told = facts(CUDA + "__global__ void second() { atomicAdd(p, 1); }")
    assert told[0] == "the source's kernels: doubled, second"
    assert any(line.startswith("1 × barriers") for line in told)
    assert any(line.startswith("1 × atomics") for line in told)
    assert facts("import torch\n") == ()
    assert is_cuda(CUDA)
    assert not is_torch(CUDA)


@pytest.mark.parametrize(
    ("source", "added"),
    [
        ("class ModelNew: ...", ""),
        ("class Model: ...", "ModelNew = Model"),
        ("def helper(x): ...\ndef forward(x): ...", "return forward(*inputs)"),
        ("def module_fn(x): ...", "return module_fn(*inputs)"),
    ],
)
def test_what_can_be_called_becomes_a_candidate(source: str, added: str) -> None:
    text = as_module("import torch\n" + source)
    assert text.startswith("import torch\n" + source)
    assert added in text


@pytest.mark.parametrize("source", ["import torch\ny = 3\n", "def forward(x:\n", "\0", "(" * 9999])
def test_what_cannot_be_called_is_none(source: str) -> None:
    assert as_module(source) == ""
