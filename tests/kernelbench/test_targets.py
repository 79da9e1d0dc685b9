"""What a target answers, so that nobody compares its name."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from kernelwright.errors import UnknownNameError
from kernelwright.kernelbench import targets
from kernelwright.kernelbench.languages import languages_on
from kernelwright.kernelbench.targets import CPU, Vendor, target_of

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


def test_a_gpu_of_amd_has_no_compute_capability() -> None:
    cdna, rdna = target_of("gfx942"), target_of("gfx1201")
    assert (cdna.is_cpu, cdna.torch_device, cdna.has_capability(70)) == (False, "cuda", False)
    assert (cdna.architecture.vendor, cdna.architecture.build_name) == (Vendor.AMD, "gfx942")
    assert [each.architecture.warp for each in (cdna, rdna)] == [64, 32]
    assert [each.architecture.version for each in (cdna, rdna)] == [(9, 4), (12, 0)]
    assert [cdna.architecture.multiplies(kind) for kind in ("tf32", "fp4")] == [True, False]
    assert [each.name for each in languages_on(cdna)] == ["triton"]
    with pytest.raises(UnknownNameError, match="gfx943") as caught:
        target_of("gfx943")
    assert "gfx942" in caught.value.hint


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
