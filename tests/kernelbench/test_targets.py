"""What a target answers, so that nobody compares its name."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from kernelwright.errors import UnknownNameError
from kernelwright.kernelbench import targets
from kernelwright.kernelbench.targets import CPU, target_of

ROOT = Path(targets.__file__).parents[1]


def test_the_cpu_and_a_gpu() -> None:
    cpu, hopper = target_of(CPU), target_of("sm_90a")
    assert (cpu.is_cpu, cpu.torch_device, cpu.flushes_denormals) == (True, "", False)
    assert (hopper.is_cpu, hopper.torch_device, hopper.flushes_denormals) == (False, "cuda", True)
    assert (str(hopper), hopper.architecture.capability) == ("sm_90", 90)
    assert cpu.has_capability(90)
    assert [hopper.has_capability(least) for least in (80, 90, 100)] == [True, True, False]
    with pytest.raises(TypeError):
        assert cpu.architecture
    with pytest.raises(UnknownNameError, match="sm_91"):
        target_of("sm_91")


def test_nobody_compares_names_of_targets() -> None:
    def is_name(node: ast.AST) -> bool:
        return ast.unparse(node) in ("CPU", "targets.CPU", "'cpu'")

    found = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for file in ROOT.rglob("*.py")
        if file.relative_to(ROOT).parts[0] not in ("tests", "benchmarks", ".venv")
        and file != Path(targets.__file__)
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Compare) and any(map(is_name, (node.left, *node.comparators)))
    ]
    assert found == []
