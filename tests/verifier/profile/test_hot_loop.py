"""The hot loop of C++ kernels: found in real code of this machine's compiler, and what binds it."""

from __future__ import annotations

import platform
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.sandbox.builders import native_listing
from kernelwright.sandbox.builders.cpp import build
from kernelwright.sandbox.builders.model import Built
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation.model import Jail
from kernelwright.traces.records import MOST_INSTRUCTIONS
from kernelwright.verifier.profile import hot_loop
from kernelwright.verifier.profile.hot_code import code_of_loops
from kernelwright.verifier.profile.hot_loop import Timed, metrics_of, remarks_of
from kernelwright.verifier.profile.x86 import Kind, find_loops

pytestmark = [
    pytest.mark.skipif(platform.machine() != "x86_64", reason="listings of x86-64 are read"),
    pytest.mark.skipif(shutil.which("objdump") is None, reason="objdump is not installed"),
]
PROTOTYPE = 'extern "C" void total(int n, const float* x, float* y);'
HEAD = 'extern "C" void total(int n, const float* x, float* y) {\n'
ONE_SUM = """
extern "C" void total(int n, const float* x, float* y) {
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += x[i];
  y[0] = sum;
}
"""
SCALED = """
extern "C" void total(int n, const float* x, float* y) {
  for (int i = 0; i < n; ++i)
    y[i] = 2.5f * x[i] + 1.0f;
}
"""
DIVIDED = SCALED.replace("2.5f * x[i] + 1.0f", "1.0f / x[i]")
NESTED = """
extern "C" void total(int n, const float* x, float* y) {
  for (int i = 0; i < n; ++i) y[i] = 0;
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < 1000; ++k)
      y[i] = y[i] * x[k] + x[k + i];
}
"""
WHOLE = """
extern "C" void total(int n, const int* x, int* y) {
  for (int i = 0; i < n; ++i) y[i] = x[i] * 3;
}
"""


@pytest.fixture
def workshop(jail: Jail, shared_cache: Path) -> Workshop:
    return Workshop(jail, shared_cache)


def built(workshop: Workshop, source: str, prototype: str = PROTOTYPE) -> Built:
    found = build(workshop, source, prototype, "total")
    assert isinstance(found, Built), found
    return found


def hottest(workshop: Workshop, source: str) -> Timed:
    return hot_loop.look(workshop, built(workshop, source))[0]


def test_a_sum_in_one_variable_waits_for_itself(workshop: Workshop) -> None:
    """Strict float32 forbids to reorder it: each addition waits three or four cycles."""
    if native_listing.find_mca() is None:
        pytest.skip("llvm-mca is not installed")
    timed = hottest(workshop, ONE_SUM)
    assert timed.is_chained
    assert timed.chain is not None
    per_flop = timed.chain / timed.loop.flops
    assert 2 <= per_flop <= 6
    (remark,) = remarks_of([timed])
    assert "bound by the chain of its answers" in remark


def test_independent_results_do_not_wait(workshop: Workshop) -> None:
    timed = hottest(workshop, SCALED)
    assert not timed.is_chained
    assert timed.loop.vector_bytes >= 16
    assert timed.loop.count(Kind.FMA, Kind.ARITHMETIC) >= 1
    assert timed.loop.stores >= 1
    assert {each.line for each in timed.loop.body} & {3, 4}


def test_divisions_are_what_binds_where_there_are_such(workshop: Workshop) -> None:
    timed = hottest(workshop, DIVIDED)
    assert timed.loop.count(Kind.DIVIDE) >= 1
    figures = {m.name: m.value for m in metrics_of(timed, flops=0, peak_gflops=None)}
    assert figures["hot_divisions"] >= 1
    assert "hot_loop_us" not in figures


def test_the_inner_loop_is_the_hot_one(workshop: Workshop) -> None:
    timed = hottest(workshop, NESTED)
    assert timed.loop.depth == 2
    assert 6 in {each.line for each in timed.loop.body}


def test_whole_numbers_have_a_hot_loop_as_well(workshop: Workshop) -> None:
    found = built(workshop, WHOLE, 'extern "C" void total(int n, const int* x, int* y);')
    (first, *_) = hot_loop.look(workshop, found)
    assert first.loop.flops == 0
    assert first.loop.loads >= 1


def test_without_llvm_mca_the_table_speaks_and_says_so(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_listing, "find_mca", lambda: None)
    timed = hottest(workshop, SCALED)
    assert timed.chain is None
    assert timed.ports > 0
    assert "by a table of usual ports" in remarks_of([timed])[0]


def test_a_file_that_is_no_code_is_a_reason_and_no_crash(workshop: Workshop) -> None:
    broken = replace(built(workshop, SCALED), artefact=b"\x7fELF nonsense", sha256="0" * 64)
    with pytest.raises(PrerequisiteError, match="cannot read the candidate"):
        hot_loop.look(workshop, broken)


def test_a_time_is_modelled_from_the_measured_peak(workshop: Workshop) -> None:
    """A loop of nothing but fused multiply-adds at two a cycle takes what the peak says."""
    loop = hottest(workshop, SCALED).loop
    pure = Timed(loop, loop.flops / (4 * loop.vector_bytes / 4), None, "vector arithmetic")
    figures = {m.name: m.value for m in metrics_of(pure, flops=1e9, peak_gflops=100.0)}
    assert figures["hot_loop_us"] == pytest.approx(1e4)


LISTING = """
0000000000001000 <f>:
f():
/k/candidate.cpp:3
    1000:\txor    %eax,%eax
    1002:\tnopw   0x0(%rax,%rax,1)
/k/candidate.cpp:4
    1008:\tvmovss (%rdi,%rax,4),%xmm0
    100d:\tvfmadd231ps 0x20(%rsp),%ymm1,%ymm2
    1013:\tvgatherdps %ymm3,(%rsi,%ymm4,4),%ymm5
    1019:\tvmovups %ymm5,0x40(%rsp)
/usr/include/c++/12/bits/stl.h:9
    101f:\tadd    $0x1,%rax
    1023:\tcmp    %rcx,%rax
    1026:\tjne    1008 <f+0x8>
    1028:\tret
"""


def test_kinds_of_instructions() -> None:
    (loop,) = find_loops(LISTING)
    kinds = [each.kind for each in loop.body]
    expected = [Kind.LOAD, Kind.FMA, Kind.GATHER, Kind.STORE, Kind.SCALAR, Kind.SCALAR, Kind.BRANCH]
    assert kinds == expected
    assert (loop.loads, loop.stores, loop.spills, loop.flops) == (2, 1, 2, 16)
    assert [each.line for each in loop.body] == [4, 4, 4, 4, 0, 0, 0]
    assert loop.depth == 1


def test_the_code_of_the_hot_loop_is_kept_with_its_lines(workshop: Workshop) -> None:
    (code, *_) = code_of_loops(hot_loop.look(workshop, built(workshop, SCALED)))
    assert code.what.startswith("Hot loop of total")
    assert "cycles a pass" in code.what
    texts = [each.text.split()[0] for each in code.instructions]
    assert any(name.startswith("v") for name in texts)
    line = 1 + SCALED.splitlines().index("    y[i] = 2.5f * x[i] + 1.0f;")
    assert line in {each.line for each in code.instructions}


def test_of_a_long_loop_the_first_instructions_are_kept(workshop: Workshop) -> None:
    body = "; ".join(f"y[i + {n} * n] = x[i] / (x[i] + {n})" for n in range(60))
    source = f"{HEAD}  for (int i = 0; i < n; ++i) {{ {body}; }}\n}}\n"
    code = code_of_loops(hot_loop.look(workshop, built(workshop, source)))[0]
    assert len(code.instructions) == MOST_INSTRUCTIONS
    assert code.left_out > 0
