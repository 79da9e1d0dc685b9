"""What is wrong with a CUDA candidate is said first, with its line, by the path that `eval` takes.

The sources of `cuda_explained/` mark the lines that may be named by `// named`; for those of
`cuda_bugs/`, whose marks say something else, the table below has what stands on such a line.
"""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kernelwright.tests.court import Court
from kernelwright.tests.sampling import one_in
from kernelwright.traces.records import Status, Verdict
from kernelwright.verifier.stands import cuda_causes
from kernelwright.verifier.stands.cuda_candidate import CudaCandidate

HERE = Path(__file__).parent
MARKED = {
    "absent_lanes": ("softmax", "takes the value of lane"),
    "atomics_without_zeros": ("spmv_csr", "adds to y, which nothing has written"),
    "blocks_race": ("spmv_csr", "race on y: .* no atomic orders them"),
    "cancelling_variance": ("layernorm", r"wrote y\["),
    "divergent_sync": ("rmsnorm", "divergent threads"),
    "dynamic_shared_overflow": ("rmsnorm", "heap-buffer-overflow"),
    "far_stride": ("bias_gelu", r"out of bounds on READ [0-9]{9,} bytes (before|after) x at"),
    "grid_one_short": ("bias_gelu", r"no thread wrote y\["),
    "guard_off_by_one": ("bias_gelu", "out of bounds on READ of 4 bytes 0 bytes after"),
    "misaligned": ("rmsnorm", "misaligned address"),
    "missing_sync": ("gemm", "race on shared memory `[AB]s`"),
    "missing_sync_between_warps": ("layernorm", "race on shared memory `parts`"),
    "missing_syncwarp": ("rmsnorm", "race on shared memory `parts`"),
    "no_maximum": ("softmax", r"wrote y\["),
    "past_row_ptr": ("spmv_csr", "0 bytes after ind(ptr|ices) at"),
    "shared_overflow": ("softmax", "shared memory `parts`"),
    "short_index": ("bias_gelu", "out of bounds on READ .* before x at|(race on|wrote) y"),
    "store_off_by_one": ("rmsnorm", "out of bounds on WRITE"),
    "sums_of_other_blocks": ("spmv_csr", "race on parts: .* no atomic orders them"),
    "threads_race": ("spmv_csr", "race on y: .* no barrier"),
    "uninitialised_shared": ("spmv_csr", "shared memory `total` that no thread"),
    "wrong_constant": ("bias_gelu", r"wrote y\["),
    "wrong_store_stride": ("gemm", "out of bounds on WRITE|race on C"),
}
"""The problem, and words of the sentence. Tried problem by problem: few stands stay open."""
BUGS = {
    "index_overflow": ("bias_gelu", ("t * elements", "(t + 1) * elements")),
    "missing_barrier": ("softmax", ("part[warp] =", "part[0]")),
    "missing_mask": ("bias_gelu", ("x[i] + bias", "y[i] =")),
    "missing_tail": ("layernorm", ("out[i] = (in[i]",)),
    "off_by_one_store": ("rmsnorm", ("out[i] = in[i]",)),
    "shared_race": ("spmv_csr", ("total += sum",)),
    "uninitialised_sum": ("gemm", ("float sum;", "sum += A", "C[row * n")),
    "wrong_identity": ("gspmm_reduce", ("C[(long long)row",)),
    "wrong_shuffle_mask": ("spmv_csr", ("__shfl_down_sync(0x7fffffff",)),
    "wrong_stride": ("gemm", ("B[(start + y) * k", "C[row * n + column]")),
}
"""The problem, and what stands on a line that may be named."""


def lines_with(source: str, *words: str) -> set[int]:
    """The numbers of the lines on which any of these words stand."""
    lines = enumerate(source.splitlines(), 1)
    return {number for number, line in lines if any(word in line for word in words)}


def assert_named(verdict: Verdict, wanted: set[int]) -> None:
    assert verdict.status in (Status.INCORRECT, Status.CRASHED), verdict.reasons
    # What leads is what a reader sees: the failing trial and its figures come after it.
    named = {int(line) for line in re.findall(r"\bline (\d+)", verdict.reasons[0])}
    assert named, verdict.reasons
    assert named & wanted, (sorted(wanted), verdict.reasons)
    assert re.search(r"\bline \d+", verdict.reasons[0][:400]), verdict.reasons


@pytest.mark.slow
@pytest.mark.parametrize("name", one_in(4, sorted(MARKED, key=MARKED.__getitem__)))
def test_what_is_wrong_leads_with_its_line(court: Court, name: str) -> None:
    problem, words = MARKED[name]
    source = (HERE / "cuda_explained" / f"{name}.cu").read_text("utf-8")
    verdict = court.look(source, problem, "cuda")
    assert_named(verdict, lines_with(source, "// named"))
    assert re.search(words, verdict.reasons[0]), verdict.reasons


@pytest.mark.slow
@pytest.mark.parametrize("name", one_in(4, sorted(BUGS, key=BUGS.__getitem__, reverse=True)))
def test_a_seeded_mistake_leads_with_its_line(court: Court, name: str) -> None:
    problem, words = BUGS[name]
    source = (HERE / "cuda_bugs" / f"{name}.cu").read_text("utf-8")
    assert_named(court.look(source, problem, "cuda"), lines_with(source, *words))


def test_every_source_has_its_row_and_marks_its_lines() -> None:
    sources = list((HERE / "cuda_explained").iterdir())
    assert sorted(path.stem for path in sources) == sorted(MARKED)
    assert sorted(path.stem for path in (HERE / "cuda_bugs").iterdir()) == sorted(BUGS)
    for path in sources:
        assert lines_with(path.read_text("utf-8"), "// named")


@pytest.mark.parametrize(
    ("told", "wanted"),
    [(["none wrote", "at line 24"], "at line 24"), (["none wrote", ""], "none wrote")],
)
def test_a_cause_with_its_line_goes_before_one_without(
    monkeypatch: pytest.MonkeyPatch, told: list[str], wanted: str
) -> None:
    """Of sizes so small that no thread writes anything no line can be told."""
    answers = iter(told)
    monkeypatch.setattr(cuda_causes, "_look_closer", lambda *_: next(answers))
    made: Any = object.__new__(CudaCandidate)
    nothing: Any = None
    failing: Any = SimpleNamespace(item="small", whole="large", schedule="")
    rng = np.random.default_rng(0)
    assert cuda_causes.explain(nothing, made, failing, "wrong", rng) == wanted
