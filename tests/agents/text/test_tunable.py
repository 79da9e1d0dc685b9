"""Which other numbers a source declares, and the source with them."""

from __future__ import annotations

import pytest

from kernelwright.agents.text.tunable import find_tunable
from kernelwright.kernelbench.languages import CPP as CPP_LANGUAGE
from kernelwright.kernelbench.languages import PYTHON
from kernelwright.sandbox.plan.declared import Plan
from kernelwright.sandbox.plan.faults import REASON_CHARACTERS
from kernelwright.sandbox.plan.parse import parse
from kernelwright.sandbox.plan.source_knobs import explain_knobs

CPP = """\
/*---
[knobs]
TILE = {value = 32, try = [16, 64]}
UNROLL = {value = 2, try = [1, 2, 4]}
WIDTH = "TILE * UNROLL"
---*/
#include <cstring>
constexpr int TILE = 32;
#define UNROLL 2
static constexpr int WIDTH = 64;  // follows
constexpr int OTHER = 32;
"""
CUDA = """\
/*---
[knobs]
ROWS = {value = 4, try = [2, 4, 8]}
THREADS = "32 * ROWS"

[[launch]]
kernel = "scale"
grid = ["cdiv(M, ROWS)"]
block = ["THREADS"]
args = ["M", "x", "y"]
---*/
constexpr int ROWS = 4;
extern "C" __global__ void scale(int M, const float* x, float* y) {}
"""
TRITON = '''\
"""
---
[knobs]
BLOCK = {value = 64, try = [32, 64, 128]}
WARPS = {value = 4, try = [2, 4]}

[[launch]]
kernel = "scale"
grid = ["M"]
args = ["x", "y"]
constexpr = {BLOCK = "BLOCK"}
num_warps = "WARPS"
---
"""
import triton
import triton.language as tl

BLOCK = tl.constexpr(64)


@triton.jit
def scale(x, y, BLOCK: tl.constexpr):
    pass
'''
TUNED = """\
import triton
import triton.language as tl

# Größe
@triton.autotune(configs=[
    triton.Config({"BLOCK": 64, "EVEN": True}, num_warps=4),  # klein
    triton.Config({"BLOCK": 128, "EVEN": False}, num_warps=8),
], key=["n"])
@triton.jit
def scale(x, y, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    pass


def run(x, y):
    scale[(1,)](x, y, 1)
"""


def test_all_combinations_are_points_and_the_source_is_one_of_them() -> None:
    found = find_tunable(CPP, "cpp")
    assert found is not None
    assert found.now is not None
    assert len(found.space) == 9
    assert found.space.at(found.now) == {"TILE": 32, "UNROLL": 2}
    assert found.write({"TILE": 32, "UNROLL": 2}) == CPP


def test_a_number_is_another_at_all_its_places_and_what_follows_from_it_too() -> None:
    found = find_tunable(CPP, "cpp")
    assert found is not None
    text = found.write({"TILE": 16, "UNROLL": 4})
    changed = [line for line in text.splitlines() if line not in CPP.splitlines()]
    assert changed == [
        "TILE = {value = 16, try = [16, 64]}",
        "UNROLL = {value = 4, try = [1, 2, 4]}",
        "constexpr int TILE = 16;",
        "#define UNROLL 4",
    ]
    assert "static constexpr int WIDTH = 64;" in text
    assert (
        found.explain({"TILE": 16, "UNROLL": 4})
        == "TILE = 16 instead of 32, UNROLL = 4 instead of 2"
    )
    assert "WIDTH = 256;" in found.write({"TILE": 64, "UNROLL": 4})


@pytest.mark.parametrize(("source", "language"), [(CUDA, "cuda"), (TRITON, "triton")])
def test_every_variant_has_a_plan_with_its_numbers(source: str, language: str) -> None:
    found = find_tunable(source, language)
    assert found is not None
    for number in range(len(found.space)):
        knobs = found.space.at(number)
        plan = parse(found.write(knobs), language)
        assert isinstance(plan, Plan), plan
        assert {name: plan.knobs[name] for name in knobs} == knobs
        if language == "cuda":
            assert plan.knobs["THREADS"] == 32 * int(knobs["ROWS"])


def test_the_configurations_of_autotune_are_points() -> None:
    found = find_tunable(TUNED, "triton")
    assert found is not None
    assert found.now is None
    assert [found.space.at(number) for number in range(len(found.space))] == [
        {"BLOCK": 64, "EVEN": 1, "num_warps": 4},
        {"BLOCK": 128, "EVEN": 0, "num_warps": 8},
    ]
    text = found.write(found.space.at(1))
    assert 'configs=[triton.Config({"BLOCK": 128, "EVEN": False}, num_warps=8)], key' in text
    assert text.startswith(TUNED[: TUNED.index("[\n")])
    assert text.endswith(TUNED[TUNED.index("], key") + 1 :])


@pytest.mark.parametrize(
    ("source", "language"),
    [
        ("constexpr int TILE = 8;\n", "cpp"),
        (
            CPP.replace("{value = 32, try = [16, 64]}", "32").replace(
                "{value = 2, try = [1, 2, 4]}", "2"
            ),
            "cpp",
        ),
        (TUNED.replace("configs=[", "configs=[*").replace("triton.Config(", "made("), "triton"),
        ("def run(:", "triton"),
    ],
)
def test_where_nothing_is_declared_there_is_nothing_to_tune(source: str, language: str) -> None:
    assert find_tunable(source, language) is None


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("constexpr int TILE = 32;", "", "line 3:17: nothing depends on the knob TILE"),
        ("#define UNROLL 2", "#define UNROLL 3", "line 4:19: the knob UNROLL is 2, and the source"),
        ("try = [1, 2, 4]", "tries = [1]", "no key named 'tries'; did you mean try?"),
        ('"TILE * UNROLL"', '"TILES * UNROLL"', "no knob above it named 'TILES'"),
        ("[16, 64]", "[]", "try must be a list of 1 to 16 integers"),
        ("value = 32", "value = 3.5", "knobs are integers below 2^63"),
        ("value = 32, ", "", "needs both, as in TILE = {value = 4"),
        ("TILE = {", "max = {", "'max' cannot be a name"),
        ('"TILE * UNROLL"', '"TILE // (UNROLL - 2)"', "zero"),
    ],
)
def test_what_is_wrong_with_knobs_is_told_with_its_place(old: str, new: str, said: str) -> None:
    fault = explain_knobs(CPP.replace(old, new, 1), CPP_LANGUAGE)
    assert fault is not None
    assert said in fault.sentence


def test_a_space_has_a_bound() -> None:
    values = ", ".join(map(str, range(1, 17)))
    knobs = "".join(f"K{n} = {{value = 1, try = [{values}]}}\n" for n in range(4))
    constants = "".join(f"constexpr int K{n} = 1;\n" for n in range(4))
    fault = explain_knobs(f"/*---\n[knobs]\n{knobs}---*/\n{constants}", CPP_LANGUAGE)
    assert fault is not None
    assert "65536 combinations, at most 4096" in fault.sentence


def test_python_knobs_are_constants_of_the_module() -> None:
    text = '"""\n---\n[knobs]\nCHUNK = {value = 8, try = [8, 16]}\n---\n"""\nCHUNK = 8\n'
    assert explain_knobs(text, PYTHON) is None
    found = find_tunable(text, "python")
    assert found is not None
    assert found.write({"CHUNK": 16}) == text.replace("= 8,", "= 16,").replace(
        "CHUNK = 8", "CHUNK = 16"
    )
    fault = explain_knobs(text.replace("CHUNK = 8\n", ""), PYTHON)
    assert fault is not None
    assert "define a constant of the module of that name" in fault.sentence


@pytest.mark.parametrize(
    "written",
    [
        "[knobs.TILE]\nvalue = 32\ntry = [16, 32]\n",
        "knobs.TILE = {value = 32, try = [16, 32]}\n",
        "[knobs]\nTILE.value = 32\nTILE.try = [16, 32]\n",
        '[knobs]\n"TILE" = {try = [16, 32], value = 0x20}\n',
    ],
)
def test_a_knob_may_be_written_as_toml_allows(written: str) -> None:
    found = find_tunable(f"/*---\n{written}---*/\nconstexpr int TILE = 32;\n", "cpp")
    assert found is not None
    text = found.write({"TILE": 16})
    assert "constexpr int TILE = 16;" in text
    again = find_tunable(text, "cpp")
    assert again is not None
    assert again.now is not None
    assert again.space.at(again.now) == {"TILE": 16}


def test_a_constant_of_thousands_of_digits_is_told_and_no_more() -> None:
    source = CPP.replace("int TILE = 32;", f"int TILE = {'9' * 6000};")
    fault = explain_knobs(source, CPP_LANGUAGE)
    assert fault is not None
    assert "the knob TILE is 32, and the source defines it as 999" in fault.reason
    assert len(fault.reason) <= REASON_CHARACTERS
