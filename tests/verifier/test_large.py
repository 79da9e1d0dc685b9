"""Large answers are judged a part at a time: every row once in the trials, and in timed calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.kernelbench import registry, rows
from kernelwright.kernelbench.languages import CPP
from kernelwright.kernelbench.skeleton import skeleton
from kernelwright.traces.records import Depth, Status
from kernelwright.verifier.evaluation import evaluate
from kernelwright.verifier.request import Order, Task
from kernelwright.verifier.stands.opening import open_stand
from kernelwright.verifier.stands.stand import Stand

pytestmark = pytest.mark.slow
ENDS = "C[(size_t)i * N + n] = (float)total;"
LATER = "static int calls; if (i == 0 && n == 0) ++calls; "


@pytest.fixture
def stand(tmp_path: Path, turns: Path, monkeypatch: pytest.MonkeyPatch):
    """One for which anything beyond a megabyte is large."""
    monkeypatch.setattr(rows, "LARGE_BYTES", 1 << 20)
    task = Task(
        problem="spmm_csr",
        workload=registry.get("spmm_csr").workload("pubmed-128"),
        cache_dir=str(tmp_path),
        timing_lock=str(turns),
        baselines=("torch eager",),
    )
    opened = open_stand(task)
    yield opened
    opened.close()


def judged(stand: Stand, put: str, depth: Depth = Depth.FULL):
    right = skeleton(registry.get("spmm_csr"), CPP)
    assert right.count(ENDS) == 1
    return evaluate(stand, Order(source=right.replace(ENDS, put), language="cpp", protocol=depth))


@pytest.mark.heavy
def test_a_right_kernel_is_verified(stand: Stand) -> None:
    verdict = judged(stand, ENDS)
    assert verdict.status is Status.VERIFIED, verdict.reasons
    assert stand.session.slots < 3
    assert len(stand.session.pool.held["B"]) < stand.session.stage.target.axes["K"]


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("put", "words"),
    [
        (f"if (M == 19717 && i == 7001) C[(size_t)i * N + n] = 0; else {ENDS}", r"C[7001, "),
        (f"if (M == 19717 && i == 7001 && n == 5) continue; {ENDS}", "never written"),
    ],
)
def test_one_wrong_row_of_the_workload_is_found(stand: Stand, put: str, words: str) -> None:
    verdict = judged(stand, put)
    assert verdict.status is Status.INCORRECT
    assert any(words in reason for reason in verdict.reasons), verdict.reasons


@pytest.mark.heavy
def test_what_keeps_an_answer_is_found_in_timed_calls(stand: Stand) -> None:
    verdict = judged(
        stand,
        f"if (M == 19717 && i % 50 == 3) {{ static float kept[20000][128]; "
        f"{ENDS} if (kept[i][n] == 0) kept[i][n] = C[(size_t)i * N + n]; "
        f"else C[(size_t)i * N + n] = kept[i][n]; }} else {ENDS}",
    )
    assert verdict.status is Status.INCORRECT
