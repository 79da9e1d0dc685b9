"""Builds before they are asked for: what may run beside an evaluation, and what may not."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.kernelbench import registry
from kernelwright.sandbox.isolation import tree
from kernelwright.tests.verifier.test_seven import below
from kernelwright.traces.records import Depth, Status, Verdict
from kernelwright.verifier.process.client import open_referee
from kernelwright.verifier.process.prefetch import Ahead, Work, ahead_of
from kernelwright.verifier.request import Order, Task
from kernelwright.verifier.stands.opening import open_stand
from kernelwright.verifier.stands.programs import build_program
from kernelwright.verifier.stands.session import count_abreast

LONG_S = 60.0
CUDA = """/*---
[[launch]]
kernel = "gelu"
grid = ["cdiv(M * N, 256)"]
block = [256]
args = ["M", "N", "x", "bias", "y"]
---*/
extern "C" __global__ void gelu(int M, int N, const float* x, const float* bias, float* y) {
    const long i = (long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= (long)M * N) return;
    const float v = x[i] + bias[i % N];
    y[i] = 0.5f * v * (1.0f + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
}
"""


def order(name: str) -> Order:
    return Order(source=name, language="cpp")


def verdict(of: Order) -> Verdict:
    return Verdict(
        candidate="c",
        problem="p",
        workload="w",
        language="cpp",
        target="sm_90",
        protocol=Depth.SCREEN,
        status=Status.SCREENED,
        seed=of.source,
    )


class Works:
    """Notes what is begun; work on what begins with `slow` lasts until it is let go."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.has_begun = threading.Semaphore(0)
        self.may_end = threading.Event()

    def __call__(self, asked: Order) -> Verdict | None:
        self.begun.append(asked.source)
        self.has_begun.release()
        if asked.source.startswith("slow"):
            assert self.may_end.wait(LONG_S)
        if asked.source == "bad":
            raise PrerequisiteError("it cannot be built")
        return verdict(asked)


@pytest.fixture
def ahead_with() -> Iterator[Callable[..., Ahead]]:
    with ExitStack() as stack:

        def make(work: Work, workers: int) -> Ahead:
            made = Ahead(work, workers)
            stack.callback(made.close)
            return made

        yield make


def test_what_is_foreseen_begins_at_once_beside_the_evaluation(
    ahead_with: Callable[..., Ahead],
) -> None:
    works = Works()
    ahead = ahead_with(works, 2)
    ahead.foresee([order("slow 1"), order("slow 2"), order("third")])
    assert works.has_begun.acquire(timeout=LONG_S)
    assert works.has_begun.acquire(timeout=LONG_S)
    # This is the evaluation: it waits for neither of the others.
    assert ahead.take(order("another")) is None
    # What was not begun is not waited for.
    assert ahead.take(order("third")) is None
    works.may_end.set()
    found = ahead.take(order("slow 1"))
    assert found is not None
    assert found.seed == "slow 1"
    assert sorted(works.begun) == ["slow 1", "slow 2"]


def test_nothing_is_done_twice(ahead_with: Callable[..., Ahead]) -> None:
    works = Works()
    ahead = ahead_with(works, 1)
    ahead.foresee([order("one"), order("one")])
    ahead.foresee([order("one")])
    assert ahead.take(order("one")) is not None or works.begun == []
    assert works.begun in ([], ["one"])


def test_a_failure_ahead_is_left_to_the_evaluation(ahead_with: Callable[..., Ahead]) -> None:
    works = Works()
    ahead = ahead_with(works, 1)
    ahead.foresee([order("bad"), order("good")])
    assert works.has_begun.acquire(timeout=LONG_S)
    assert ahead.take(order("bad")) is None
    assert works.has_begun.acquire(timeout=LONG_S)
    assert ahead.take(order("good")) is not None


def test_without_a_free_cpu_nothing_is_done_ahead(ahead_with: Callable[..., Ahead]) -> None:
    works = Works()
    ahead = ahead_with(works, 0)
    ahead.foresee([order("one")])
    assert ahead.take(order("one")) is None
    assert works.begun == []


def test_what_was_not_begun_is_given_up_at_the_end() -> None:
    works = Works()
    ahead = Ahead(works, 1)
    ahead.foresee([order("slow"), order("never")])
    assert works.has_begun.acquire(timeout=LONG_S)
    closing = threading.Thread(target=ahead.close)
    closing.start()
    works.may_end.set()
    closing.join(LONG_S)
    assert not closing.is_alive()
    assert works.begun[0] == "slow"


def used_s() -> float:
    """CPU time of everything below this process, as far as it lives."""
    return tree.usage(below(os.getpid())).cpu_s


@pytest.mark.slow
def test_on_cpu_the_next_source_is_built_beside_an_evaluation_and_not_while_it_is_timed(
    shared_cache: Path,
) -> None:
    task = Task(
        problem="spmm_csr",
        workload=registry.get("spmm_csr").workload("tiny"),
        cache_dir=str(shared_cache),
        baselines=("torch eager",),
    )
    stand = open_stand(task)
    try:
        if count_abreast(stand.session.workshop.cpus) < 2:
            pytest.skip("there is no CPU for it")
        honest = (Path(__file__).parent / "seven" / "honest.cpp").read_text()
        now, then = (Order(source=f"{honest}// ahead {n}\n", language="cpp") for n in range(2))
        stand.wait_prepared()
        with closing(ahead_of(stand)) as ahead:
            ahead.foresee([then])
            time.sleep(0.1)
            with stand.session.workshop.standstill.hold():
                before = used_s()
                time.sleep(0.5)
                assert ahead.take(now) is None
                assert used_s() - before < 0.1
            ahead.take(then)
            program = build_program(stand.session, then.source, then.language)
            assert program.built.is_cached
    finally:
        stand.close()


@pytest.fixture
def task(shared_cache: Path) -> Task:
    workload = registry.get("bias_gelu").workload("tiny")
    return Task(
        problem="bias_gelu",
        workload=workload,
        target="sm_90",
        languages=("cuda",),
        cache_dir=str(shared_cache),
    )


@pytest.mark.slow
def test_emulated_verdicts_found_ahead_are_those_that_are_asked_for(task: Task) -> None:
    orders = [
        Order(source=text, language="cuda")
        for text in (CUDA, CUDA.replace("0.5f", "0.6f"), CUDA + "not C", CUDA + "// again")
    ]
    try:
        referee = open_referee(task)
    except PrerequisiteError as error:
        pytest.skip(str(error))
    with referee:
        referee.foresee(orders[1:])
        found = [referee.evaluate(each) for each in orders]
    assert [v.status for v in found] == [
        Status.SCREENED,
        Status.INCORRECT,
        Status.BUILD_FAILED,
        Status.SCREENED,
    ]
    assert len({v.candidate for v in found}) == len({v.seed for v in found}) == 4


@pytest.mark.slow
def test_the_end_of_a_referee_leaves_nothing_of_what_runs_ahead(task: Task) -> None:
    try:
        referee = open_referee(task)
    except PrerequisiteError as error:
        pytest.skip(str(error))
    with referee:
        referee.foresee([Order(source=f"{CUDA}// {n}", language="cuda") for n in range(3)])
        referee.evaluate(Order(source="nothing", language="cuda"))
        pids = below(referee.pid)
    # What was killed is gone once the kernel has got round to it.
    ends = time.monotonic() + 10.0
    while (
        left := [pid for pid in pids if Path(f"/proc/{pid}").exists()]
    ) and ends > time.monotonic():
        time.sleep(0.05)
    assert not left
