"""What sizes waste by themselves: each rule speaks where it should, and is silent beside that."""

from __future__ import annotations

import pytest

from kernelwright.errors import UnknownNameError
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.shapes import ShapeNote, lint_shapes, word_notes

GEMM, HALVES = registry.get("gemm"), registry.get("gemm_f16")


def rules(notes: tuple[ShapeNote, ...]) -> dict[str, ShapeNote]:
    return {note.what: note for note in notes}


def product(m: int, n: int, k: int, target: str = "sm_90") -> dict[str, ShapeNote]:
    return rules(lint_shapes(HALVES, {"M": m, "N": n, "K": k}, target))


def test_sizes_that_fit_are_not_spoken_of() -> None:
    # 66 tiles of rows by 16 of columns are eight full waves on 132 multiprocessors.
    assert product(66 * 128, 16 * 128, 4096) == {}


def test_a_vocabulary_that_no_wide_load_divides() -> None:
    """GPT-2's 50,257 beside the 50,304 to which it is padded (arXiv 2401.14489, section 6)."""
    assert "50264 would not" in product(8192, 50257, 1024)["alignment"].text
    assert "alignment" not in product(8192, 50304, 1024)


def test_a_tile_of_which_one_row_is_used() -> None:
    note = product(1, 4096, 4096)["tiles"]
    assert note.wasted == pytest.approx(15 / 16)
    assert "tiles of 16 x 64 to 6%" in note.text


def test_the_last_wave() -> None:
    full, more = product(132 * 128, 128, 4096), product(133 * 128, 128, 4096)
    assert "waves" not in full
    assert more["waves"].wasted == pytest.approx(1 - 133 / 264)
    assert "on the 132 multiprocessors of H" in more["waves"].text
    assert "split the inner dimension" in product(512, 512, 65536)["waves"].text
    assert "waves" not in product(133 * 128, 1280, 4096)


def test_vectors_and_pages_of_a_cpu() -> None:
    odd = rules(lint_shapes(GEMM, {"M": 64, "N": 33, "K": 64}, "cpu", vector_bytes=32))
    assert odd["vectors"].wasted == pytest.approx(1 - 33 / 40)
    assert "pages" not in odd
    even = rules(lint_shapes(GEMM, {"M": 64, "N": 1024, "K": 1024}, "cpu"))
    assert "A (4096 bytes)" in even["pages"].text
    assert "vectors" not in even


def test_rows_of_a_normalisation_may_lie_pages_apart() -> None:
    assert lint_shapes(registry.get("softmax"), {"M": 64, "N": 1024}, "cpu") == ()


def test_the_costliest_comes_first_and_few_are_told() -> None:
    notes = lint_shapes(HALVES, {"M": 1, "N": 4097, "K": 4097}, "sm_90")
    assert [note.wasted for note in notes] == sorted((n.wasted for n in notes), reverse=True)
    assert word_notes(notes, 1) == notes[0].text
    assert word_notes(()) == ""


def test_a_target_that_nobody_knows() -> None:
    with pytest.raises(UnknownNameError):
        lint_shapes(GEMM, {"M": 1, "N": 1, "K": 1}, "sm_1")


def test_every_problem_can_be_asked() -> None:
    for problem in registry.problems():
        for workload in problem.workloads:
            if workload.axes.keys() == problem.axes.keys():
                for target in ("cpu", "sm_80", "gfx942"):
                    found = lint_shapes(problem, workload.axes, target)
                    assert all(0 <= note.wasted < 1 for note in found)
