"""Whose bytes a call moves, by tensor and by line, from counts whose sums are plain."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernelwright.sandbox.run.memory_access import Accesses, LaunchCount
from kernelwright.verifier.profile.executed import Counts
from kernelwright.verifier.profile.traffic import metrics_of, remarks_of

B = Accesses(7, "global", "read", 4, 100, 3200, 1000, 400, 100, 100, 800, ("B",))
C = Accesses(9, "global", "write", 4, 50, 1600, 200, 200, 50, 50, 200, ("C",))
SHARED = Accesses(8, "shared", "read", 4, 10_000, 320_000, 0, 0, 10_000, 10_000, 0)
TINY = replace(C, line=3, sectors=1, from_l2=1, buffers=("indptr",))


def counts(*launches: tuple[Accesses, ...], blocks: int = 10, counted: int = 10) -> Counts:
    made = [LaunchCount(0, blocks, counted, 4, 1.0, accesses) for accesses in launches]
    return Counts("pubmed-128", tuple(made), is_subject=True, buffer_bytes={"B": 200 * 32})


def figures(given: Counts) -> dict[str, float]:
    return {metric.name: metric.value for metric in metrics_of(given)}


def test_each_tensor_has_its_share_and_what_caches_answer() -> None:
    found = figures(counts((B, C, SHARED)))
    assert found["traffic:B"] == pytest.approx(800 * 32 / 1e6)
    assert found["traffic_share:B"] == pytest.approx(0.8)
    assert found["l1_answers:B"] == pytest.approx(0.2)
    # 200 sectors are seen for the first time, 600 again.
    assert found["l2_can_answer:B"] == pytest.approx(0.75)
    assert found["traffic_share:C"] == pytest.approx(0.2)
    assert "l2_can_answer:C" not in found


def test_launches_are_added_and_a_part_stands_for_the_grid() -> None:
    whole, part = counts((B,), (B,)), counts((B,), blocks=30, counted=10)
    assert figures(whole)["traffic:B"] == pytest.approx(2 * 800 * 32 / 1e6)
    assert figures(part)["traffic:B"] == pytest.approx(3 * 800 * 32 / 1e6)


def test_what_decides_nothing_is_left_out() -> None:
    given = counts((B, C, TINY))
    assert not any("indptr" in name for name in figures(given))
    assert not any("line 3" in remark for remark in remarks_of(given))


def test_the_heaviest_lines_are_told_with_their_tensor() -> None:
    first, second = remarks_of(counts((C, B)))
    assert first.startswith("line 7: 80% of all sectors beyond L1 on pubmed-128 (read of B)")
    assert "L1 answers 20%" in first
    assert second.startswith("line 9: 20%")


def test_without_accesses_nothing_is_told() -> None:
    assert metrics_of(counts((SHARED,))) == []
    assert remarks_of(counts((SHARED,))) == []
