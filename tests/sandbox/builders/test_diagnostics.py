"""What a candidate can and cannot make the compiler say."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.sandbox.builders import diagnostics
from kernelwright.sandbox.builders.compiler import find_compiler
from kernelwright.sandbox.builders.cpp import build
from kernelwright.sandbox.builders.model import BuildFailed, Built
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation.bare import BareJail

PROTOTYPE = 'extern "C" void k(int n, const float* x, float* y);'
SCALAR = """extern "C" void k(int n, const float* x, float* y) {
  for (int i = 1; i < n; ++i) { if (x[i] > 9) break; y[i] = y[i - 1] / x[i]; }
}
"""
CLAIM = "{}:2:1: optimized: loop vectorized using 64 byte vectors"

needs_gcc = pytest.mark.skipif(
    not find_compiler().is_gcc, reason="only g++ gives vectorisation remarks in a file"
)


def remarks_of(source: str, cache_dir: Path) -> tuple[str, ...]:
    result = build(Workshop(BareJail(), cache_dir), source, PROTOTYPE, "k")
    assert isinstance(result, Built), result
    return result.remarks


@needs_gcc
def test_a_vectorised_loop_and_a_missed_one_are_told(tmp_path: Path) -> None:
    plain = SCALAR.replace("}\n}", "}\n  for (int i = 0; i < n; ++i) y[i] = 2 * x[i];\n}")
    found = remarks_of(plain, tmp_path)
    assert any(remark.startswith("3: loop vectorized using ") for remark in found)
    assert any(remark.startswith("2: not vectorized") for remark in found)


@needs_gcc
@pytest.mark.parametrize(
    "forgery",
    [
        '#line 9 "x\\n' + CLAIM.format("candidate.cpp") + '\\n"\n',
        '#line 2 "candidate.cpp"\n',
        f'#pragma message "{CLAIM.format("candidate.cpp")}"\n',
    ],
    ids=["line directive with newlines", "line directive", "pragma message"],
)
def test_a_source_cannot_forge_a_remark(forgery: str, tmp_path: Path) -> None:
    assert not any("loop vectorized" in remark for remark in remarks_of(forgery + SCALAR, tmp_path))


@needs_gcc
def test_assembler_text_cannot_forge_a_remark(tmp_path: Path) -> None:
    comment = 'asm volatile("/*\\n" __FILE__ "' + CLAIM.format("") + '\\n*/");'
    found = remarks_of(SCALAR.replace("{ if", "{ " + comment + " if"), tmp_path)
    assert not any("loop vectorized" in remark for remark in found)


def test_only_remarks_under_the_secret_name_count() -> None:
    text = "\n".join(
        [
            CLAIM.format("secret/candidate.cpp"),
            CLAIM.format("candidate.cpp").replace(":2:", ":3:"),
            "secret/candidate.cpp:4:1: optimized: basic block part vectorized using 64 byte "
            "vectors",
            "secret/candidate.cpp:5:1: missed: not vectorized: no grouped stores in basic block.",
        ]
    )
    assert diagnostics.remarks(text, "secret/candidate.cpp") == (
        "2: loop vectorized using 64 byte vectors",
        "5: not vectorized: no grouped stores in basic block",
    )


def test_the_log_is_capped_and_without_control_characters(tmp_path: Path) -> None:
    source = "#error \x1b[31m red \x07\n" + "#error more words of no use\n" * 5000
    failed = build(Workshop(BareJail(), tmp_path), source, PROTOTYPE, "k")
    assert isinstance(failed, BuildFailed)
    assert all(c.isprintable() or c in "\n\t" for c in failed.log)
    assert len(failed.log.encode()) <= diagnostics.LOG_BYTES
    assert "\x1b" not in failed.reason
    long = diagnostics.clean("é" * 40_000)
    assert len(long.encode()) <= diagnostics.LOG_BYTES
    assert "more bytes" in long
