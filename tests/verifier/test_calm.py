"""Blocks in which something else kept the machine busy: who tells, and what then counts."""

from __future__ import annotations

import math
import time
import types
from pathlib import Path

import numpy as np
import pytest

from kernelwright.cli.verdicts import measurement_notes
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import Family
from kernelwright.traces.records import CHAMPION, LEAST_CALM, Depth, Measurement, Timing
from kernelwright.verifier.clock import statistics
from kernelwright.verifier.clock.calm import DISTURBED, LEAST_KNOWN, MACHINE, SLOWED, Calm
from kernelwright.verifier.clock.timing import A_LITTLE, Rounds, Series, sample_block, took_of
from kernelwright.verifier.stands.contests import DISTURBED_S, OPEN_S, ROUNDS, Contest
from kernelwright.verifier.truth.trials import Item, make_item

QUIET, BUSY = 100.0, 150.0


def block(candidate: float, library: float, **more: float) -> dict[str, list[float]]:
    times = {"candidate": candidate, "library": library, **more}
    return {name: [us] * 6 for name, us in times.items()}


def series(*blocks: dict[str, list[float]]) -> Series:
    found = Series()
    for each in blocks:
        found.blocks.append(each)
        found.calm.see(took_of(each))
    return found


def test_a_baseline_that_takes_long_tells_and_one_that_varies_does_not() -> None:
    rng, calm = np.random.default_rng(0), Calm()
    usual = QUIET * np.exp(rng.normal(0.0, 0.04, 60))
    for us in usual:
        calm.see({"library": us})
    assert np.mean([calm.is_disturbed({"library": us}) for us in usual]) < 0.05
    assert calm.is_disturbed({"library": BUSY})


@pytest.mark.parametrize(("apart", "limit"), [(0.01, 1.08), (0.03, 1.14), (0.1, 1.2)])
def test_a_library_whose_processes_differ_little_is_known_to_be_disturbed_sooner(
    apart: float, limit: float
) -> None:
    rng, calm = np.random.default_rng(0), Calm()
    for us in QUIET * np.exp(rng.normal(0.0, apart, 280)):
        calm.see({"library": us})
    for us in QUIET * rng.uniform(1.4, 1.7, 120):
        calm.see({"library": us})
    usual = calm.usual_us("library")
    assert usual is not None
    found = math.exp(calm._limit("library"))
    assert found == pytest.approx(limit, abs=0.03)
    assert not calm.is_disturbed({"library": 0.99 * found * usual})
    assert calm.is_disturbed({"library": 1.01 * found * usual})


def test_nobody_tells_before_it_is_known() -> None:
    calm = Calm()
    for _ in range(LEAST_KNOWN - 1):
        calm.see({"library": QUIET})
    assert not calm.is_disturbed({"library": BUSY})
    calm.see({"library": QUIET})
    assert calm.is_disturbed({"library": BUSY})
    assert not calm.is_disturbed({"another": BUSY})
    assert not calm.is_disturbed({})


def test_one_library_of_several_that_has_troubles_of_its_own_does_not_tell() -> None:
    calm, usual = Calm(), {"one": QUIET, "other": QUIET, "third": QUIET}
    for _ in range(LEAST_KNOWN):
        calm.see(usual)
    assert not calm.is_disturbed({**usual, "one": 10 * QUIET})
    assert calm.is_disturbed({"one": BUSY, "other": BUSY, "third": QUIET})


def test_a_copy_that_takes_long_tells_whatever_libraries_say() -> None:
    calm = Calm()
    for _ in range(LEAST_KNOWN):
        calm.see({"library": QUIET, MACHINE: QUIET})
    assert not calm.is_disturbed({"library": QUIET, MACHINE: 0.99 * SLOWED * QUIET})
    assert calm.is_disturbed({"library": QUIET, MACHINE: 1.01 * SLOWED * QUIET})
    assert calm.is_disturbed({"library": BUSY, MACHINE: QUIET})
    assert calm.is_disturbed({"another": BUSY, MACHINE: BUSY})


def test_the_copy_is_no_baseline() -> None:
    found = series({**block(50.0, QUIET), MACHINE: [QUIET] * 6})
    assert found.names == ["candidate", "library"]


def test_what_is_known_of_the_machine_outlives_the_session(tmp_path: Path) -> None:
    place = tmp_path / "not there yet" / "known.json"
    for _ in range(LEAST_KNOWN):
        Calm(place).see({"library": QUIET})
    later = Calm(place)
    assert later.usual_us("library") == QUIET
    assert later.is_disturbed({"library": BUSY})
    for broken in ("", "[]", '{"library": 3}', '{"library": ["much"]}', "\0"):
        place.write_text(broken)
        damaged = Calm(place)
        assert damaged.usual_us("library") is None
        damaged.see({"library": QUIET})
        assert Calm(place)._seen.keys() == {"library"}
    place.unlink()
    place.mkdir()
    Calm(place).see({"library": QUIET})  # nobody needs it


def test_nobody_is_credited_with_what_slowed_a_library() -> None:
    rng, quiet = np.random.default_rng(0), Calm()
    for _ in range(20 * LEAST_KNOWN):
        quiet.see({"library": QUIET})
    found = Series(calm=quiet)
    found.blocks += [block(50.0, BUSY) for _ in range(6)]
    assert found.tell_slowed("library") == pytest.approx(BUSY / QUIET)
    ours, theirs = found.blocks_of("candidate"), found.blocks_of("library")
    gain = statistics.speedup(ours, theirs, rng)
    told = statistics.beside_library(gain, found.tell_slowed("library"))
    assert told.low < QUIET / 50.0 < BUSY / 50.0 == pytest.approx(told.median)
    found.blocks += [block(50.0, QUIET) for _ in range(LEAST_CALM)]
    assert found.tell_slowed("library") == 1.0


def test_the_candidate_and_the_champion_are_not_asked() -> None:
    quiet = [block(50.0, QUIET) for _ in range(4)]
    slow = {**block(500.0, QUIET), CHAMPION: [500.0] * 6}
    assert series(*quiet, slow).counted == [*quiet, slow]


@pytest.mark.parametrize("calm", [LEAST_CALM - 1, LEAST_CALM])
def test_figures_rest_on_the_undisturbed_blocks_where_there_are_enough(calm: int) -> None:
    quiet = [block(50.0, QUIET) for _ in range(calm)]
    busy = [block(50.0, BUSY) for _ in range(4)]
    found = series(*busy, *quiet)
    assert found.calm_blocks == quiet
    assert found.counted == (quiet if calm >= LEAST_CALM else [*busy, *quiet])


def test_where_few_were_undisturbed_those_that_were_a_little_count_too() -> None:
    quiet = [block(50.0, QUIET) for _ in range(20)]
    calm = series(*quiet).calm
    least = math.log(DISTURBED[0])
    little, more, worse = (
        block(50.0, QUIET * math.exp(times * least)) for times in (1.1, 0.99 * A_LITTLE, 1.4)
    )
    busy = block(50.0, BUSY)
    blocks = [busy, worse, more, little, little]

    def count(*of: dict[str, list[float]]) -> list[dict[str, list[float]]]:
        return Series(blocks=list(of), calm=calm).counted

    assert count(*blocks, *quiet[:3]) == [more, little, little, *quiet[:3]]
    assert count(*blocks, *quiet[:5]) == [little, little, *quiet[:5]]
    assert count(*blocks, *quiet[:6]) == quiet[:6]
    assert count(busy, *quiet[:3]) == quiet[:3]
    assert count(*blocks, *quiet[:2]) == [*blocks, *quiet[:2]]


@pytest.mark.parametrize("calm", [0, 1])
def test_what_too_few_undisturbed_blocks_have_is_told_by_all_that_have_it(calm: int) -> None:
    """One block alone would tell nothing of how far processes differ."""
    busy = [block(50.0, BUSY, slow=900.0) for _ in range(2)]
    quiet = [block(50.0, QUIET, **({"slow": 600.0} if n < calm else {})) for n in range(4)]
    found = series(*busy, *quiet)
    assert len(found.blocks_of("candidate", "library")) == len(found.blocks_of("library")) == 4
    slow = 2 + calm
    assert len(found.blocks_of("candidate", "slow")) == len(found.blocks_of("slow")) == slow


def contest(
    busy: int, quiet: int, protocol: Depth, took_s: float = 0.0, *, ours_us: float = 60.0
) -> Contest:
    """A contest without a champion that has timed so many blocks, in another order than asked."""
    found = Contest.__new__(Contest)
    blocks = [block(ours_us, QUIET)] * quiet + [block(ours_us, BUSY)] * busy
    found.__dict__["series"] = series(*blocks)
    found.blocks, found._least, found._most = len(blocks), 6, 6
    found._protocol, found._champion = protocol, None
    found._begun = time.monotonic() - took_s
    place(found, QUIET, (0, 1))
    return found


def place(found: Contest, fastest_us: float, cpus: tuple[int, ...]) -> None:
    """Gives a contest a library that takes so long on these CPUs."""
    reference = types.SimpleNamespace(fastest_us=fastest_us, cpus=cpus)
    found._baselines = types.SimpleNamespace(reference=reference)  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("busy", "quiet", "goes_on"),
    [(0, 5, True), (0, 6, False), (2, 4, True), (2, 6, False), (6, 2, True), (6, 3, False)],
)
def test_disturbed_blocks_are_timed_again_half_as_many_at_most(
    busy: int, quiet: int, goes_on: bool
) -> None:
    assert contest(busy, quiet, Depth.CONFIRM)._is_open() is goes_on


@pytest.mark.parametrize(
    ("busy", "quiet", "took_s", "goes_on"),
    [
        (12, 2, DISTURBED_S - 1, True),
        (12, 2, DISTURBED_S + 1, False),
        (12, LEAST_CALM, OPEN_S[Depth.FULL] - 1, True),
        (12, LEAST_CALM, OPEN_S[Depth.FULL] + 1, False),
        (12, 6, 0.0, False),
        (1, 2, DISTURBED_S + 1, True),
    ],
)
def test_who_is_judged_alone_waits_for_a_machine_that_is_left_alone(
    busy: int, quiet: int, took_s: float, goes_on: bool
) -> None:
    assert contest(busy, quiet, Depth.FULL, took_s)._is_open() is goes_on


@pytest.mark.parametrize(("noise", "goes_on"), [(0.001, False), (0.3, True)])
def test_who_is_judged_alone_goes_on_until_the_gain_is_known(noise: float, goes_on: bool) -> None:
    rng, found = np.random.default_rng(3), contest(0, 6, Depth.FULL)
    blocks = [
        {"candidate": list(60 * np.exp(rng.normal(shift, noise, 20))), "library": [QUIET] * 20}
        for shift in rng.normal(0.0, noise / 4, 6)
    ]
    found.__dict__["series"] = series(*blocks)
    found._most, found._rng = 14, rng
    assert found._is_open() is goes_on
    found._begun -= OPEN_S[Depth.FULL] + 1
    assert not found._is_open()


@pytest.mark.parametrize(("busy", "quiet", "goes_on"), [(6, 2, True), (7, 2, False), (1, 6, False)])
def test_nobody_waits_to_know_better_what_starting_a_call_takes(
    busy: int, quiet: int, goes_on: bool
) -> None:
    found = contest(busy, quiet, Depth.FULL, ours_us=20.0)
    found._most = 14
    assert found._is_open() is goes_on


@pytest.mark.parametrize(
    ("ours_us", "fastest_us", "cpus", "is_brief"),
    [
        (20.0, 17.0, (0, 1), True),
        (90.0, 17.0, (0, 1), True),
        (20.0, 70.0, (0,), True),
        (90.0, 70.0, (0,), False),
        (20.0, 17.0, (), False),
    ],
)
def test_calls_on_cpus_are_brief_where_a_side_takes_no_longer_than_their_start(
    ours_us: float, fastest_us: float, cpus: tuple[int, ...], is_brief: bool
) -> None:
    found = contest(0, 6, Depth.FULL, ours_us=ours_us)
    place(found, fastest_us, cpus)
    assert found._is_brief is is_brief
    found.blocks = 0
    place(found, 17.0, (0,))
    assert found._is_brief


@pytest.mark.parametrize(
    ("ours_us", "protocol", "fewer"),
    [(20.0, Depth.FULL, 2), (90.0, Depth.FULL, 1), (20.0, Depth.CONFIRM, 1)],
)
def test_brief_calls_are_timed_in_fewer_rounds(ours_us: float, protocol: Depth, fewer: int) -> None:
    found, usual = contest(0, 1, protocol, ours_us=ours_us), ROUNDS[protocol]
    found._base, found._is_large = usual, False
    assert found._rounds().count * fewer == usual.count
    assert found._rounds().budget_s * fewer == usual.budget_s


class Waiting:
    """Takes 10 µs, or 90 where it waited: in the calls of these numbers, over and over."""

    def __init__(self, name: str, waits: tuple[int, ...], period: int) -> None:
        self.name, self.waited = name, 0.0
        self._waits, self._period, self._calls = waits, period, 0

    def take(self, items: list[Item], first: int) -> float:
        del items, first
        self.waited = 0.9 if self._calls % self._period in self._waits else 0.0
        self._calls += 1
        return 90.0 if self.waited else 10.0


def sampled(waits: float, *of: tuple[int, ...], period: int = 4) -> list[list[float]]:
    problem, rng = registry.get("softmax"), np.random.default_rng(1)
    structure = problem.structure(problem.workload("tiny"))
    sides = [Waiting(name, each, period) for name, each in zip("abc", of, strict=False)]
    found = Series(batch=1)
    sample_block(
        found,
        sides[0],
        list(sides[1:]),
        lambda n: [make_item(problem, structure, Family.NORMAL, rng) for _ in range(n)],
        8,
        Rounds(12, budget_s=60.0, least=6, warm_up=0, waits=waits),
        rng,
    )
    (block,) = found.blocks
    return list(block.values())


def test_rounds_in_which_a_side_waited_for_a_cpu_do_not_count_and_others_take_their_place() -> None:
    assert sampled(0.2, (0,), (2,)) == [[10.0] * 12] * 2
    assert sampled(math.inf, (0,), (2,)) == [
        [90.0, 10.0, 10.0, 10.0] * 3,
        [10.0, 10.0, 90.0, 10.0] * 3,
    ]


def test_where_too_few_rounds_are_left_all_count() -> None:
    assert sampled(0.2, (0, 1, 2), ()) == [[10.0] * 6] * 2
    ours, theirs = sampled(0.2, (0, 1, 2, 3), (), period=5)
    assert ours == ([90.0] * 4 + [10.0]) * 4 + [90.0] * 4
    assert theirs == [10.0] * 24


def test_a_reader_is_told_of_a_disturbed_machine() -> None:
    timing = Timing(median_us=50.0, low_us=49.0, high_us=51.0)
    some = Measurement(workload="tiny", candidate=timing, blocks=8, disturbed_blocks=2)
    assert not some.is_disturbed
    told = "2 of 8 processes were timed while"
    assert any(told in note and "only where few" in note for note in measurement_notes(some))
    most = some.model_copy(update={"disturbed_blocks": 6})
    assert most.is_disturbed
    assert any("all of which count" in note for note in measurement_notes(most))
    none = some.model_copy(update={"disturbed_blocks": 0})
    assert not any("busy" in note for note in measurement_notes(none))


@pytest.mark.parametrize(
    ("share", "fills"), [(None, False), (0.4, False), (0.6, True), (1.05, True), (2.1, False)]
)
def test_a_reader_is_told_where_others_decide_what_the_cache_holds(
    share: float | None, fills: bool
) -> None:
    timing = Timing(median_us=500.0, low_us=490.0, high_us=510.0)
    found = Measurement(workload="4096x1024@offline", candidate=timing, cache_share=share)
    notes = " ".join(measurement_notes(found))
    assert ("4096x1024@server times calls on cold caches" in notes) is fills
    assert (f"{100 * (share or 0):.3g} % of the last-level cache" in notes) is fills
