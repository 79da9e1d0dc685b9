"""Several workloads as the parts of one: how they are written, counted and stood for."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelwright.errors import KernelwrightError, UsageError
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.packs import MOST_PARTS, name_packs, tell_parts, workload_of
from kernelwright.kernelbench.problem import Workload

SOFTMAX, GEMM, SPMM = (registry.get(name) for name in ("softmax", "gemm", "spmm_csr"))


def shares(workload: Workload) -> dict[str, float]:
    return {part.workload.name: part.weight for part in workload.parts}


def test_sizes_have_weights_and_the_weightiest_is_first() -> None:
    found = workload_of(SOFTMAX, axes=["M=64,N=100", "M=8,N=9:3", {"M": 2, "N": 3}])
    assert shares(found) == {"M=8,N=9": 3, "M=64,N=100": 1, "M=2,N=3": 1}
    assert found.first.axes == {"M": 8, "N": 9}
    assert tell_parts(found) == "M=8,N=9 60%; M=64,N=100 20%; M=2,N=3 20%"


def test_one_size_is_a_plain_workload() -> None:
    found = workload_of(SOFTMAX, axes="M=64,N=100")
    assert (found.parts, found.first) == ((), found)


def test_a_range_has_its_ends_and_sizes_between_in_equal_ratios() -> None:
    found = workload_of(SOFTMAX, axes="M=1..1000,N=64:2")
    sizes = sorted(part.workload.axes["M"] for part in found.parts)
    assert sizes == [1, 10, 100, 1000]
    assert sum(shares(found).values()) == pytest.approx(2)


def test_workloads_are_named_with_weights() -> None:
    found = workload_of(SPMM, several="tiny:0.5, cora:2")
    assert shares(found) == {"cora": 2, "tiny": 0.5}


def test_several_are_timed_in_a_mode_each_or_all_together() -> None:
    each = workload_of(SPMM, several="tiny@server:3,cora")
    assert shares(each) == {"tiny@server": 3, "cora": 1}
    assert [part.workload.timing for part in each.parts] == ["server", ""]
    both = workload_of(GEMM, several="pack:hgemm/3@offline")
    assert both.name == "pack:hgemm/3@offline"
    assert {part.workload.timing for part in both.parts} == {"offline"}
    sized = workload_of(SOFTMAX, "@server", axes=["M=1,N=8", "M=2,N=8"])
    assert shares(sized) == {"M=1,N=8@server": 1, "M=2,N=8@server": 1}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("calls.jsonl", '{"M": 1, "N": 8}\n\n{"M": 4, "N": 8, "count": 5}\n{"N": 8, "M": 1}\n'),
        ("calls.csv", "N,M,count\n8,1,1\n8,4,5\n8,1,1\n"),
    ],
)
def test_calls_of_a_trace_count(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    found = workload_of(SOFTMAX, several=str(tmp_path / name))
    assert shares(found) == {"M=4,N=8": 5, "M=1,N=8": 2}


def test_where_there_are_many_some_stand_for_all_by_weight(tmp_path: Path) -> None:
    calls = [f'{{"M": {m}, "N": 16, "count": {100 if m == 1 else 1}}}' for m in range(1, 101)]
    trace = tmp_path / "calls.jsonl"
    trace.write_text("\n".join(calls))
    found = workload_of(SOFTMAX, several=f"{trace}/4")
    # Half of the calls have one row: half of the shares are theirs.
    assert shares(found)["M=1,N=16"] == pytest.approx(199 / 2)
    assert sum(shares(found).values()) == pytest.approx(199)
    assert found.note == "3 of 100 sizes stand for all"
    assert len(workload_of(SOFTMAX, several=str(trace)).parts) <= 8


def fits(problem: str, pack: str) -> bool:
    try:
        workload_of(registry.get(problem), several=f"pack:{pack}")
    except UsageError as error:
        return "has no sizes for" not in str(error)
    return True


@pytest.mark.parametrize("pack", name_packs())
def test_each_pack_is_for_some_problem_and_its_sizes_fit(pack: str) -> None:
    fitting = [name for name in registry.names() if fits(name, pack)]
    assert fitting
    for name in fitting:
        problem = registry.get(name)
        found = workload_of(problem, several=f"pack:{pack}/3")
        assert 2 <= len(found.parts) <= 3
        for part in found.parts:
            assert part.workload.axes.keys() == problem.default_workload.axes.keys()
            assert min(part.workload.axes.values()) >= 1


def test_a_pack_of_a_thousand_products_is_a_thousand() -> None:
    found = workload_of(GEMM, several="pack:hgemm")
    assert found.note == f"{len(found.parts)} of 1000 sizes stand for all"
    volumes = [math.prod(part.workload.axes.values()) for part in found.parts]
    assert max(volumes) > 100 * min(volumes)


def lines(path: str, text: str) -> Callable[[Path], str]:
    def write(folder: Path) -> str:
        (folder / path).write_text(text)
        return str(folder / path)

    return write


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (lines("a.jsonl", '{"M": 1}\n'), "a.jsonl:1: the axes are M"),
        (lines("a.jsonl", '{"M": 1, "N": 2}\nnonsense\n'), "a.jsonl:2: "),
        (lines("a.jsonl", '{"M": "x", "N": 2}\n'), "a.jsonl:1: invalid literal"),
        (lines("a.jsonl", '{"M": 1, "N": 2, "count": -1}\n'), "the weight '-1' is no number above"),
        (lines("a.jsonl", "\n"), "holds no call"),
        (lines("a.csv", "M,K\n1,2\n"), "a.csv:2: the axes are M, K"),
        (lines("a.toml", "[[sizes]]\nof = 3\n"), "TypeError"),
        (lines("a.toml", "sizes = [\n"), "TOMLDecodeError"),
        (lambda _: "absent.csv", "absent.csv cannot be read"),
        (lambda _: "pack:nonsense", "nonsense"),
        (lambda _: "pack:gnn", "has no sizes for softmax"),
        (lambda _: "tiny:x", "the weight 'x' is no number above zero"),
        (lambda _: f"pack:llm/{MOST_PARTS + 1}", "cannot stand for"),
        (lambda _: "nonsense:2", "nonsense"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place(
    tmp_path: Path, asked: Callable[[Path], str], words: str
) -> None:
    with pytest.raises(KernelwrightError) as caught:
        workload_of(SOFTMAX, several=asked(tmp_path))
    assert words in str(caught.value)
    assert caught.value.hint


def test_workloads_are_not_asked_for_twice() -> None:
    with pytest.raises(UsageError, match="names all workloads by itself"):
        workload_of(SOFTMAX, "tiny", several="pack:llm")


@pytest.mark.parametrize("axes", ["M=1,N=2:0", "M=1,N=2:x", "M=1..2..3,N=4", "M=..3,N=4"])
def test_sizes_and_weights_are_numbers(axes: str) -> None:
    with pytest.raises(UsageError):
        workload_of(SOFTMAX, axes=axes)
