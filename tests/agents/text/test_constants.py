"""Which numbers of a source are tried as others."""

from __future__ import annotations

import pytest

from kernelwright.agents.text.constants import variants

CPP = """\
#define TILE 32
constexpr int UNROLL = 4;
static constexpr std::size_t WIDTH = 1u;
const float scale = 2.0f;
const int mode = 010;
// constexpr is a word in a comment
for (int i = 0; i < 8; ++i) {}
"""


def test_every_named_constant_is_doubled_then_halved_one_at_a_time() -> None:
    found = variants(CPP, "cpp")
    assert [v.change for v in found] == [
        "TILE = 64 instead of 32",
        "UNROLL = 8 instead of 4",
        "WIDTH = 2 instead of 1",
        "TILE = 16 instead of 32",
        "UNROLL = 2 instead of 4",
    ]
    assert found[0].source == CPP.replace("TILE 32", "TILE 64")
    assert found[2].source == CPP.replace("WIDTH = 1u", "WIDTH = 2u")
    assert len({v.source for v in found}) == len(found)


def test_python_names_its_constants_in_capitals() -> None:
    source = "BLOCK = 128\nrows = 4\nSTAGES: int = 2\ndef run(x):\n    WIDE = 8\n"
    assert [v.change for v in variants(source, "triton")] == [
        "BLOCK = 256 instead of 128",
        "STAGES = 4 instead of 2",
        "BLOCK = 64 instead of 128",
        "STAGES = 1 instead of 2",
    ]


@pytest.mark.parametrize("text", ["", "#define N 99999999999", "#define N 0", "int n = 3;"])
def test_where_nothing_is_named_there_is_nothing_to_tune(text: str) -> None:
    assert variants(text, "cpp") == []
