"""What the system says of the processor and its caches, and that nobody else reads it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from kernelwright.kernelbench import machine

ROOT = Path(machine.__file__).parents[1]
X86 = """\
processor\t: 0
vendor_id\t: Testing
model name\t: Testing 9000
flags\t\t: fpu avx2 fma
vmx flags\t: avx512f

processor\t: 1
model name\t: Testing 9000
flags\t\t: fpu
"""
ARM = "processor\t: 0\nFeatures\t: fp asimd sve\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n"


def told(folder: Path, text: str) -> machine.Processor:
    place = folder / "cpuinfo"
    place.write_text(text)
    return machine.processor(place)


def test_the_first_processor_answers_for_all(tmp_path: Path) -> None:
    known = told(tmp_path, X86)
    assert known.name == "Testing 9000"
    assert known.flags == {"fpu", "avx2", "fma"}
    assert known.vector_bytes == 32
    assert told(tmp_path, ARM).flags == {"fp", "asimd", "sve"}


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [(X86, "fma", "avx512f"), (X86, "9000", "9001"), (ARM, "sve", "sve sve2"), (ARM, "d40", "d41")],
)
def test_native_code_is_signed_by_what_decides_it(
    tmp_path: Path, text: str, old: str, new: str
) -> None:
    before = told(tmp_path, text).signature
    assert told(tmp_path, text.replace(old, new)).signature != before
    assert told(tmp_path, text.replace("processor", "Processor")).signature == before


def test_a_system_that_tells_nothing_makes_nothing_up(tmp_path: Path) -> None:
    assert machine.processor(tmp_path / "none") == machine.Processor()
    assert list(machine.caches(root=tmp_path)) == []


def test_a_damaged_cache_is_left_out(tmp_path: Path) -> None:
    rows = {"0": ("Data", "1", "48K", "0"), "1": ("Instruction", "1", "32K", "0")}
    rows |= {"2": ("Unified", "2", "2M", "0-1,4"), "3": ("Unified", "3", "many", "0")}
    for index, words in rows.items():
        entry = tmp_path / f"cpu0/cache/index{index}"
        entry.mkdir(parents=True)
        for name, word in zip(("type", "level", "size", "shared_cpu_list"), words, strict=True):
            (entry / name).write_text(word + "\n")
    found = list(machine.caches(0, tmp_path))
    assert [(o.level, o.bytes, o.sharing) for o in found] == [(1, 48 << 10, 1), (2, 2 << 20, 3)]


def test_nobody_else_reads_the_processor() -> None:
    """A jail may let candidates read it; that list of paths opens nothing."""
    naming = {
        str(file.relative_to(ROOT))
        for file in ROOT.rglob("*.py")
        if file.relative_to(ROOT).parts[0] not in ("tests", ".venv")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Constant) and node.value == "/proc/cpuinfo"
    }
    assert naming == {"kernelbench/machine.py", "sandbox/isolation/landlock.py"}


def test_naming_a_machine_imports_nothing_heavy() -> None:
    code = "import sys, kernelwright.kernelbench.machine; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
