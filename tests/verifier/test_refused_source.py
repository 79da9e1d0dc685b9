"""What a source may not say is refused with its line; comments and honest switches are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.recipes import recipes_for
from kernelwright.verifier.stands.refused_source import explain_apart, explain_loose

HONEST = """#include <cmath>
extern "C" void bias_gelu(int M, int N, const float* x, const float* bias, float* y) {
    for (int i = 0; i < M * N; ++i) y[i] = std::erf(x[i] + bias[i % N]);
}
"""


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ('__attribute__((no_sanitize("address")))\n', 1),
        ("int one;\n#ifdef __SANITIZE_ADDRESS__\n#endif\n", 2),
        ("int one; // a \\\n note\n#ifdef __SANI\\\nTIZE_ADD\\  \r\nRESS__\n#endif\n", 3),
        ("\n\nbool is_set = std::getenv(name);\n", 3),
        ("extern char** environ;\n", 1),
        ('void* found = dlsym(nullptr, "name");\n', 1),
        ('auto* maps = fopen("/proc/self/maps", "r");\n', 1),
        ("\nsigaction(SIGTERM, &action, nullptr);\n", 2),
    ],
)
def test_a_source_that_can_treat_a_sanitized_build_apart_is_named(words, line):
    assert explain_apart(words + HONEST).startswith(f"line {line} of the source names ")
    assert explain_apart(HONEST + "/* The environment of a signal, by symbol: open, maps. */") == ""


def test_no_honest_source_is_taken_for_one():
    honest = Path(__file__).parent.parent / "honest" / "native"
    sources = [path.read_text("utf-8") for path in honest.iterdir()]
    for name in registry.names():
        sources += [recipe.render(recipe.first_knobs()) for recipe in recipes_for(name)]
    assert len(sources) > 40
    assert {explain_apart(source) + explain_loose(source) for source in sources} == {""}


LOOSE = {
    "pragma": ('#pragma GCC optimize("Ofast")\n', 1),
    "pragma without brackets": ('\n#pragma GCC optimize "O3", "fast-math"\n', 2),
    "with its prefix": ('#pragma GCC optimize("-ffast-math")\n', 1),
    "among others": ('#pragma GCC optimize("O3,unroll-loops,associative-math")\n', 1),
    "signs of zeros": ('#pragma GCC optimize("no-signed-zeros")\n', 1),
    "attribute": ('__attribute__((optimize("O3",\n    "fast-math"))) void f();\n', 2),
    "attribute in brackets": ('[[gnu::optimize("reciprocal-math")]] void f();\n', 1),
    "spelled by a macro": ('#define FAST "Ofast"\n[[gnu::__optimize__(FAST)]] void f();\n', 1),
    "operator": ('int one;\n_Pragma("GCC optimize(\\"Ofast\\")")\n', 2),
    "operator in a macro": ('#define DO(x) _Pragma(#x)\nDO(GCC optimize("fast-math"))\n', 2),
    "over two lines": ('int one;\n#pragma GCC \\\n  optimize("Ofa\\\nst")\n', 3),
    "behind a comment": ('/* fast */ #pragma GCC /* math */ optimize("Ofast") // yes\n', 1),
    "contraction": ("#pragma STDC FP_CONTRACT ON\n", 1),
    "Clang's": ("#pragma clang fp contract(off) reassociate(on)\n", 1),
    "Clang's contraction": ("#pragma clang fp contract(fast)\n", 1),
    "precision": ("#pragma float_control(precise, off, push)\n", 1),
}

STRICT = (
    '#pragma GCC optimize("O3,unroll-loops")',
    '#pragma GCC optimize("-fno-fast-math", "fp-contract=off")',
    '#pragma GCC target("avx2,fma")',
    "#pragma GCC unroll 8",
    "#pragma GCC ivdep",
    "#pragma omp simd reduction(+ : sum)",
    "#pragma STDC FP_CONTRACT OFF",
    "#pragma clang fp contract(off) reassociate(off)",
    '// #pragma GCC optimize("Ofast")',
    '/* Not with "-ffast-math",\n   not with\n#pragma STDC FP_CONTRACT ON\n*/',
    'const char* said = "fast"; int fast, math, left = fast-math;',
    "void optimize(int fast);",
)


@pytest.mark.parametrize("name", LOOSE)
def test_what_loosens_arithmetic_is_named_with_its_line_and_a_remedy(name: str) -> None:
    words, line = LOOSE[name]
    told = explain_loose(words + HONEST)
    assert told.startswith(f"line {line} of the source loosens floating-point arithmetic ("), told
    assert "leave it out, and reorder sums by hand" in told


@pytest.mark.parametrize("words", STRICT)
def test_what_loosens_nothing_is_let_be(words: str) -> None:
    assert explain_loose(f"{words}\n{HONEST}") == ""
