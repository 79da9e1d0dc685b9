"""When a candidate gets the inputs of a call, and what its calls count as."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import Family
from kernelwright.sandbox.run.arena import Arena, footprint
from kernelwright.sandbox.run.gate import Coverage
from kernelwright.sandbox.run.process import Timed
from kernelwright.verifier.clock import clocks
from kernelwright.verifier.clock.clocks import Clocks
from kernelwright.verifier.clock.drawn_words import sum_outputs
from kernelwright.verifier.clock.timed_sides import CandidateSide
from kernelwright.verifier.failure import Failed
from kernelwright.verifier.truth.poison import PATTERNS
from kernelwright.verifier.truth.trials import Item, make_item

SLOTS = 3
EMPTY = Timed(0, 1_000, 2_000, 4_000, 5_000)


class Onlooker:
    """A runner's end that notes which items' inputs lie in which slots, before and at the gate."""

    clean = EMPTY
    cpus = 2
    overhead_us = 0.0
    coverage = Coverage()

    def __init__(self, items: list[Item]) -> None:
        self.items = items
        self.side: CandidateSide | None = None
        self.before: list[set[int]] = []
        self.at_the_gate: list[set[int]] = []
        self.tells_the_sum = True
        self.answers = True

    def expect(self, table: bytes) -> None:
        pass

    def ping(self, first: int = 0, count: int = 0) -> None:
        pass

    def there(self) -> set[int]:
        """The items whose inputs, all or some, are in any slot."""
        assert self.side is not None
        return {
            number
            for number, item in enumerate(self.items)
            for slot in self.side.slots
            for name, array in item.inputs.items()
            if np.array_equal(slot.inputs[name], array)
        }

    def call(
        self, slot: int, *, timeout_s: float, release: Callable[[], None], together: int
    ) -> Timed:
        assert timeout_s > 0
        assert together == 1
        assert self.side is not None
        self.before.append(self.there())
        release()
        self.at_the_gate.append(self.there())
        outputs = self.side.slots[slot].outputs
        for output in outputs.values() if self.answers else ():
            output.fill(1.0)
        return Timed(
            50_000,
            60_000,
            70_000,
            choice=7,
            told_sum=sum_outputs(outputs, 7) if self.tells_the_sum else 1,
        )


@pytest.fixture
def scene() -> Iterator[tuple[CandidateSide, Onlooker]]:
    problem = registry.get("softmax")
    structure = problem.structure(problem.workload("tiny"))
    rng = np.random.default_rng(1)
    sizes = [SLOTS * size + 8192 for size in footprint(problem, structure.axes)]
    items = [make_item(problem, structure, Family.NORMAL, rng) for _ in range(SLOTS)]
    with Arena(*sizes) as arena:
        runner = Onlooker(items)
        side = CandidateSide("candidate", runner, arena, problem, rng, timeout_s=1.0)  # type: ignore[arg-type]
        runner.side = side
        side.place(structure, SLOTS)
        yield side, runner
        side.answers().clear()
        side.slots.clear()


def test_inputs_come_one_call_at_a_time_and_while_nobody_can_look(scene) -> None:
    """C7: there is never anything to work on but the call that was asked for."""
    side, runner = scene
    side.take(runner.items, 0)
    assert runner.before == [set(), {0}, {0, 1}]
    assert runner.at_the_gate == [{0}, {0, 1}, {0, 1, 2}]


def test_outputs_are_poisoned_while_nobody_can_look(scene) -> None:
    """Whoever is awake before that could write what it leaves out in the call."""
    side, runner = scene
    released = []

    def call(slot: int, *, timeout_s: float, release: Callable[[], None], together: int) -> Timed:
        assert timeout_s
        assert together == 1
        (output,) = side.slots[slot].outputs.values()
        output.fill(7)
        release()
        released.append(set(np.unique(output.view(np.uint32)).tolist()))
        output.fill(1.0)
        return Timed(50_000, 60_000, 70_000, choice=7, told_sum=sum_outputs({"y": output}, 7))

    runner.call = call  # type: ignore[method-assign]
    side.take(runner.items, 0)
    assert [len(words) for words in released] == [1] * SLOTS
    assert all(words <= set(PATTERNS) for words in released)


def test_a_referee_that_was_put_aside_at_the_gate_makes_nobody_suspect() -> None:
    honest = Timed(100_000, 105_000, 110_000)
    waited = honest._replace(ahead_ns=3_000_000)
    seen = Clocks()
    for number in range(12):
        seen.add(waited if number % 3 else honest, EMPTY, 2)
    assert all(check.passed for check in clocks.checks(seen, 2))


def test_an_answer_that_came_after_it_was_told_done_is_wrong(scene) -> None:
    side, runner = scene
    runner.tells_the_sum = False
    failed = [check for check in side.answer(runner.items[0], side.slots[0]) if not check.passed]
    assert "done when it said so" in [check.name for check in failed]


def test_a_timed_call_without_an_answer_is_wrong_also_where_it_is_not_judged(scene) -> None:
    """C7: who has it ready in other calls, and returns at once in these."""
    side, runner = scene
    side.judge(0)
    side.take(runner.items, 0)
    runner.answers = False
    with pytest.raises(
        Failed, match=r"every element written: 2\d\d of 2\d\d that were drawn never"
    ):
        side.take(runner.items, 0)
    assert side.answers() == []


def test_a_guard_band_is_looked_at_after_every_call(scene) -> None:
    side, runner = scene
    honest = runner.call

    def beyond(slot: int, **more) -> Timed:
        timed = honest(slot, **more)
        (answer,) = side.slots[slot].outputs.values()
        guards = dict(side._arena.guards(side.slots[slot]))
        assert answer.size
        guards["after y"][0] ^= 1
        return timed

    runner.call = beyond  # type: ignore[method-assign]
    with pytest.raises(Failed, match="after y"):
        side.take(runner.items, 0)


@pytest.mark.parametrize(
    ("call", "counts_as"),
    [
        (Timed(10_000, 101_000, 102_000), 100.0),
        (Timed(99_000, 101_000, 102_000), 100.0),
        (Timed(120_000, 101_000, 102_000), 120.0),
        (Timed(10_000, 11_000, 403_500), 200.0),
        (Timed(99_000, 101_000, 102_000, 307_000), 400.0),
        (Timed(99_000, 101_000, 102_000, 7_000), 100.0),
        (Timed(60_000, 61_000, 102_000, 7_000, 108_750), 100.0),
    ],
    ids=[
        "a lie",
        "an honest claim",
        "a claim of more",
        "much work",
        "work ahead of the gate",
        "waking up",
        "work behind the answer",
    ],
)
def test_a_call_counts_as_what_the_referee_saw(call: Timed, counts_as: float) -> None:
    """Empty call off; CPU time on two CPUs at best, and on one for each thread.

    Of CPU time 1.75 times what an empty call took is off: 3.5 µs of 2 in a call, 7 ahead of the
    gate, 8.75 of the busiest thread.
    """
    assert Clocks().add(call, EMPTY, 2) == pytest.approx(counts_as)


@pytest.mark.parametrize(
    ("call", "counts_as"),
    [
        (Timed(100_000, 130_000, 0, host_ns=120_000), 100.0),
        (Timed(20_000, 70_000, 0, host_ns=60_000), 70.0),
        (Timed(100_000, 160_000, 0, host_ns=100_000), 160.0),
    ],
    ids=["waking up", "events that lie", "work after the events"],
)
def test_on_a_device_events_count_where_the_referees_clock_bears_them_out(
    call: Timed, counts_as: float
) -> None:
    assert Clocks().add(call, Timed(0, 0, 0), 2) == pytest.approx(counts_as)


def counted(walls_us: list[int]) -> list[float]:
    """What calls count as whose events say 10 µs."""
    seen = Clocks()
    calls = [Timed(10_000, 1_000 * wall, 0, host_ns=1) for wall in walls_us]
    return [seen.add(call, Timed(0, 0, 0), 2) for call in calls]


def test_a_short_kernel_is_not_charged_for_a_host_that_wakes_up_late() -> None:
    """Baselines, whose events alone count, are not either."""
    assert counted([11, 70, 12, 70, 11] * 6) == [10.0] * 30


def test_events_that_lie_in_most_calls_do_not_count() -> None:
    assert counted([70, 70, 11, 70, 70]) == [70.0, 70.0, 11.0, 70.0, 70.0]


def verdicts(call: Timed) -> dict[str, bool]:
    seen = Clocks()
    for _ in range(12):
        seen.add(call, EMPTY, 2)
    return {check.name: check.passed for check in clocks.checks(seen, 2)}


def test_an_honest_runner_passes_every_check_on_its_clocks() -> None:
    for microseconds in (3, 50, 1_000, 100_000):
        ns = microseconds * 1_000
        assert all(verdicts(Timed(ns, ns + 15_000, 2 * ns + 30_000, 60_000)).values())


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (Timed(50_000, 300_000, 300_000, 0), "two clocks"),
        (Timed(1_000_000, 1_220_000, 1_220_000, 0), "two clocks"),
        (Timed(1_000_000, 1_000_000, 4_000_000, 0), "CPU time within calls"),
        (Timed(1_000_000, 1_000_000, 1_000_000, 220_000), "CPU time ahead of the gate"),
    ],
)
def test_a_runner_that_does_more_than_it_claims_does_not(call: Timed, name: str) -> None:
    assert not verdicts(call)[name]
