"""What holds of every stand: the same orders give verdicts of which the same is true."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from kernelwright.kernelbench.tried import Tried
from kernelwright.tests.sandbox.run.device.fake_driver import fake_driver
from kernelwright.tests.verifier.sources import CPP, CUDA, PYTHON, triton
from kernelwright.tests.verifier.stands import (
    is_as_expected,
    look,
    machine,
    on_device,
    opened,
    task,
)
from kernelwright.traces.records import Depth, Status, Verdict, candidate_id
from kernelwright.verifier.evaluation import evaluate
from kernelwright.verifier.request import Order
from kernelwright.verifier.stands.stand import Stand, TimingStand

pytestmark = pytest.mark.slow
SEED = b"the same 16 byte"
FOREIGN = "fortran"


@dataclass(frozen=True)
class Suite:
    """A stand, and candidates for it."""

    stand: Stand
    language: str
    right: str
    wrong: str
    crashing: str
    unbuildable: str

    def order(self, source: str, protocol: Depth = Depth.SCREEN) -> Order:
        return Order(source=source, language=self.language, protocol=protocol)

    def judged(self, source: str, protocol: Depth = Depth.SCREEN) -> Verdict:
        """A look, of which all holds that holds of any."""
        order = self.order(source, protocol)
        verdict = look(self.stand, order, SEED)
        assert_holds(self.stand, order, verdict)
        return verdict


def assert_holds(stand: Stand, order: Order, verdict: Verdict) -> None:
    """What is true of every verdict on every stand."""
    session = stand.session
    assert verdict.candidate == candidate_id(order.source)
    assert (verdict.problem, verdict.workload) == (session.problem.name, session.task.workload.name)
    assert (verdict.language, verdict.target) == (order.language, session.task.target)
    assert verdict.protocol is order.protocol
    assert verdict.seed == SEED.hex()
    assert verdict.isolation == session.isolation
    assert session.versions.items() <= verdict.versions.items()
    assert Verdict.model_validate_json(verdict.model_dump_json()) == verdict
    assert all(spent >= 0 for spent in verdict.seconds.values())
    assert all(check.name for check in verdict.checks)
    failed = [check for check in verdict.checks if not check.passed]
    if verdict.status.is_pass:
        assert not verdict.reasons
        assert not failed
    else:
        assert verdict.reasons[0]
        assert not verdict.measurements
    if verdict.status in (Status.INCORRECT, Status.SUSPECT):
        assert failed
        assert failed[0].name in verdict.reasons[0]
    if verdict.status in (Status.BUILD_FAILED, Status.UNSUPPORTED):
        assert not verdict.checks
    assert_timed_or_not(stand, verdict)


def assert_timed_or_not(stand: Stand, verdict: Verdict) -> None:
    """Nothing has a time where nothing was timed, and all that passed where things are."""
    if stand.is_emulated:
        assert "time" not in verdict.seconds
        assert not verdict.measurements
        assert verdict.status is not Status.VERIFIED
        assert verdict.emulated or not verdict.checks
    else:
        assert not verdict.emulated
        assert bool(verdict.measurements) is verdict.status.is_pass
    for measured in verdict.measurements:
        assert measured.best_baseline in measured.baselines
        assert measured.candidate.median_us > 0


def cpp(cache: Path) -> Suite:
    return Suite(
        opened(task(cache)), "cpp", CPP % "", CPP % "y[0] += 1;", CPP % "abort();", CPP % "no C"
    )


def python(cache: Path) -> Suite:
    wrong = PYTHON + "    y += 1\n"
    crashing = PYTHON + "    raise ValueError('no')\n"
    return Suite(opened(task(cache)), "python", PYTHON, wrong, crashing, "def run(:")


def cuda(cache: Path) -> Suite:
    return Suite(
        opened(task(cache, "sm_90", "cuda")),
        "cuda",
        CUDA % "",
        CUDA % "y[i] += 1;",
        CUDA % "y[i + (1l << 40)] = 0;",
        CUDA % "no C",
    )


def interpreted(cache: Path) -> Suite:
    return Suite(
        opened(task(cache, "sm_90", "triton")),
        "triton",
        triton(),
        triton("gelu(x + bias)", "gelu(x + bias) + 1"),
        triton("tl.store(", "tl.store((1 << 40) + "),
        triton("grid =", "mesh ="),
    )


def device(cache: Path) -> Suite:
    return Suite(
        opened(task(cache, "sm_90", "cuda"), machine(fake_driver(cache))),
        "cuda",
        on_device("gelu_right"),
        on_device("gelu_wrong"),
        on_device("gelu_at_wrong_address"),
        on_device("gelu_right").replace("{\n", "{ no C\n", 1),
    )


STANDS: dict[str, Callable[[Path], Suite]] = {
    "cpu": cpp,
    "cpu, host code": python,
    "device": device,
    "emulated": cuda,
    "interpreted": interpreted,
}


@pytest.fixture(scope="module", params=STANDS)
def here(
    request: pytest.FixtureRequest, shared_cache: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Suite]:
    cache = shared_cache
    if request.param == "device":
        # What is known of a device, and who has it, stands in the cache.
        cache = tmp_path_factory.mktemp("cache")
        cache.chmod(0o755)
    suite = STANDS[request.param](cache)
    yield suite
    suite.stand.close()


@pytest.mark.parametrize("protocol", [Depth.SCREEN, Depth.FULL])
def test_a_right_candidate_passes(here: Suite, protocol: Depth) -> None:
    is_screened = here.stand.is_emulated or protocol is Depth.SCREEN
    verdict = here.judged(here.right, protocol)
    assert verdict.artefact
    assert verdict.profile is not None
    assert "correct on" in verdict.checks[0].name
    is_as_expected(verdict, Status.SCREENED if is_screened else Status.VERIFIED)


def test_a_wrong_candidate_is_incorrect(here: Suite) -> None:
    verdict = here.judged(here.wrong)
    assert verdict.status is Status.INCORRECT
    assert verdict.checks[-1].name.startswith("correct on")


def test_a_candidate_that_takes_its_process_down_is_a_result(here: Suite) -> None:
    assert here.judged(here.crashing).status is Status.CRASHED


@pytest.mark.parametrize(
    "source", ["", "\0", "/*---\n---*/", '"""\n---\n---\n"""', "}{" * 1000, "\u03bc"]
)
def test_a_bad_source_is_a_result(here: Suite, source: str) -> None:
    assert here.judged(source).status is Status.BUILD_FAILED


def test_what_does_not_build_is_a_result(here: Suite) -> None:
    verdict = here.judged(here.unbuildable)
    assert verdict.status is Status.BUILD_FAILED
    assert not verdict.artefact


def test_another_language_is_refused_before_anything_is_done(here: Suite) -> None:
    order = Order(source=here.right, language=FOREIGN)
    verdict = look(here.stand, order, SEED)
    assert_holds(here.stand, order, verdict)
    assert verdict.status is Status.UNSUPPORTED
    assert not verdict.seconds
    assert here.language in verdict.reasons[0]


def test_the_same_seed_gives_the_same_trials(here: Suite) -> None:
    """The same seed after the same evaluations, which a verdict tells beside it."""
    first = here.judged(here.wrong)
    assert first.tried
    start_again(here, first.tried)
    again = here.judged(here.wrong)
    assert again.tried == first.tried
    assert [check.name for check in again.checks] == [check.name for check in first.checks]


def start_again(here: Suite, tried: str) -> None:
    session = here.stand.session
    session.stage = replace(session.stage, tried=Tried.from_text(tried))


def test_each_evaluation_draws_a_seed_of_its_own(here: Suite) -> None:
    order = here.order(here.wrong)
    seeds = {evaluate(here.stand, order).seed for _ in range(2)}
    assert len(seeds) == 2
    assert all(len(bytes.fromhex(seed)) == 16 for seed in seeds)


def test_it_says_what_it_is(here: Suite) -> None:
    stand = here.stand
    assert not stand.illness()
    assert stand.facts
    assert all(isinstance(value, float) for value in stand.facts.values())
    assert bool(stand.wait_prepared().baselines) is not stand.is_emulated
    assert isinstance(stand, TimingStand) is not stand.is_emulated


def test_on_fewer_cpus_it_is_the_same_stand(here: Suite) -> None:
    one = here.stand.session.workshop.cpus[:1]
    there = here.stand.on_cpus(one)
    assert there.session.workshop.cpus == one
    assert type(there) is type(here.stand)
    assert there.session.isolation == here.stand.session.isolation
    order = here.order(here.wrong)
    assert_holds(there, order, verdict := look(there, order, SEED))
    assert verdict.status is Status.INCORRECT


def test_what_was_built_ahead_is_judged_the_same(here: Suite) -> None:
    if not isinstance(here.stand, TimingStand):
        pytest.skip("whole verdicts are found ahead of it, which test_ahead.py looks at")
    found, tried = [], here.stand.session.stage.tried.text
    for source in (here.wrong, here.wrong + "\n"):
        start_again(here, tried)
        verdict = here.judged(source)
        found.append((verdict.status, [check.name for check in verdict.checks]))
        here.stand.build_ahead(here.order(here.wrong + "\n"))
    assert found[0] == found[1]
