"""The CUDA recipes: their launch plans, their builds for GPUs, and their answers in emulation."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from kernelwright.errors import PrerequisiteError, UsageError
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.features import features
from kernelwright.kernelbench.recipe import Knobs, Recipe
from kernelwright.kernelbench.recipes import get, recipes_for
from kernelwright.kernelbench.recipes.catalogue import RECIPES
from kernelwright.kernelbench.targets import architecture
from kernelwright.sandbox.builders import toolchain
from kernelwright.sandbox.builders.cuda import build
from kernelwright.sandbox.builders.model import DeviceBuilt
from kernelwright.sandbox.plan import Launches, Plan, check_built, parse, resolve
from kernelwright.sandbox.run.arena import EXTRA_BYTES
from kernelwright.tests.sampling import IS_WHOLE, at_most, one_in, some_of
from kernelwright.traces.records import Depth, Status
from kernelwright.verifier.checks.checking import try_all
from kernelwright.verifier.evaluation import look
from kernelwright.verifier.request import Order, Task
from kernelwright.verifier.stands import emulated_looks, sides
from kernelwright.verifier.stands.emulated import EmulatedStand
from kernelwright.verifier.stands.leased import Machine
from kernelwright.verifier.stands.opening import open_stand
from kernelwright.verifier.stands.verdict_draft import Draft
from kernelwright.verifier.truth import gates
from kernelwright.verifier.truth.trials import Trial, hidden_shapes

EXAMPLE = Path(__file__).with_name("spmm_crc.cu")
TARGETS = tuple(map(architecture, ("sm_80", "sm_90", "sm_100")))
ALL = [recipe for recipe in RECIPES if recipe.language == "cuda"]
HIDDEN = 6
"""Hidden shapes of one sweep; the first has a size beyond 16 bits."""
LADDER = ["naive", "crc", "crc-cwm", "row-seq", "row-par", "nnz-seq", "nnz-par"]

each_recipe = pytest.mark.parametrize("recipe", ALL, ids=lambda r: f"{r.problem}-{r.family}")
SAMPLED = some_of(ALL, lambda recipe: recipe.problem in ("spmm_csr", "softmax"))
"""The whole has three sets of knobs of each; a sample has one for each test."""
SCREENED = one_in(2, SAMPLED)
if not IS_WHOLE:
    SCREENED += at_most(4, [recipe for recipe in ALL if recipe not in SAMPLED])
sampled_recipe = pytest.mark.parametrize("recipe", SAMPLED, ids=lambda r: f"{r.problem}-{r.family}")


@pytest.fixture(scope="module")
def stand_for(shared_cache: Path) -> Iterator[Callable[[str], EmulatedStand]]:
    """Stands that judge for sm_90 by emulation."""
    open_ones: dict[str, EmulatedStand] = {}

    def find(problem: str) -> EmulatedStand:
        if problem not in open_ones:
            open_ones[problem] = opened(problem, shared_cache)
        return open_ones[problem]

    yield find
    for stand in open_ones.values():
        stand.close()


def opened(problem: str, cache: Path) -> EmulatedStand:
    workload = registry.get(problem).workload("tiny")
    task = Task(problem=problem, workload=workload, target="sm_90", cache_dir=str(cache))
    try:
        toolchain.find_nvrtc()
        stand = open_stand(task, Machine(allowed=()))
    except PrerequisiteError as error:
        pytest.skip(str(error))
    assert isinstance(stand, EmulatedStand)
    return stand


def sample(recipe: Recipe, count: int) -> list[Knobs]:
    """The default and a seeded choice of legal knobs."""
    space = list(recipe.space({}))
    return [
        recipe.first_knobs(),
        *random.Random(recipe.problem + recipe.family).sample(space, count),
    ]


def tried_knobs(recipe: Recipe, *, is_default: bool) -> list[Knobs]:
    """Three sets; in a sample the default, or one that is not."""
    knobs = sample(recipe, 2)
    return knobs if IS_WHOLE else knobs[:1] if is_default else knobs[1:2]


def planned(source: str) -> Plan:
    plan = parse(source, "cuda")
    assert isinstance(plan, Plan), plan
    return plan


def assert_screened(stand: EmulatedStand, source: str) -> None:
    """The referee's screening: trials, other orders of threads, races on shared memory."""
    order = Order(source=source, language="cuda", protocol=Depth.SCREEN)
    verdict = look(stand, Draft(order, stand.session, b"recipes!"))
    assert verdict.status is Status.SCREENED, (verdict.reasons, verdict.log[-2000:])
    assert any(check.name == emulated_looks.RACES for check in verdict.checks)


def assert_answers_agree(stand: EmulatedStand, source: str, seed: int) -> None:
    """Every family on the tiny workload, three on each of the hidden shapes."""
    rng, session = np.random.default_rng(seed), stand.session
    families = list(session.problem.families)
    trials = [Trial("tiny", session.stage.target, family) for family in families]
    for number, (name, structure) in enumerate(islice(hidden_shapes(session.stage, rng), HIDDEN)):
        drawn = (families[(3 * number + at) % len(families)] for at in range(3))
        trials += [Trial(name, structure, family) for family in drawn]
    made = stand.tools.build("cuda", source, seed)
    with (
        sides.arena_for(session, EXTRA_BYTES) as arena,
        sides.start_side(
            session, Depth.SCREEN, "recipe", made.program("order"), arena, rng, made.extra
        ) as side,
    ):
        failed = gates.first_failure(try_all(side, session.stage, trials, rng))
    assert failed is None, (failed.name, failed.detail)


def test_every_problem_has_recipes() -> None:
    """Some in one of the languages of GPUs alone."""
    for problem in registry.names():
        families = [recipe.family for recipe in recipes_for(problem, "cuda")]
        assert len(set(families)) == len(families)
        assert families or recipes_for(problem, "triton"), problem
    assert [recipe.family for recipe in recipes_for("spmm_csr", "cuda")] == LADDER


@each_recipe
def test_plan_launches_every_workload_everywhere(recipe: Recipe) -> None:
    problem = registry.get(recipe.problem)
    tiny = problem.structure(problem.workload("tiny"))
    shapes = [tiny, *islice(problem.variations(tiny, np.random.default_rng(3)), HIDDEN)]
    for knobs in sample(recipe, 4):
        plan = planned(recipe.render(knobs))
        for structure in shapes:
            for target in TARGETS:
                found = resolve(plan, problem, structure.axes, features(structure), target)
                assert isinstance(found, Launches), (knobs, structure.axes, found)
                assert found.launches


@each_recipe
def test_front_matter_names_the_recipe(recipe: Recipe) -> None:
    for knobs in sample(recipe, 2):
        assert planned(recipe.render(knobs)).facts["recipe"] == {
            "family": recipe.family,
            "knobs": knobs,
        }


@each_recipe
def test_default_is_in_a_space_worth_searching(recipe: Recipe) -> None:
    assert recipe.is_legal(recipe.first_knobs(), {})
    least = 10 if registry.get(recipe.problem).policies or registry.get(recipe.problem).base else 4
    assert least <= recipe.size({}) <= 2500
    assert all(constraint.reason for constraint in recipe.constraints)


@each_recipe
def test_every_knob_changes_what_is_launched(recipe: Recipe) -> None:
    for knob in recipe.knobs:
        drawn = (recipe.render({**recipe.first_knobs(), knob.name: value}) for value in knob.values)
        # Without what names the knobs, whatever the template and the plan do with them.
        told = {re.sub(r"\n\[recipe\.knobs\].*?---\*/", "", source, flags=re.S) for source in drawn}
        assert len(told) == len(knob.values), knob.name


def test_unknown_knobs_are_errors() -> None:
    recipe = get("spmm_csr", "crc", "cuda")
    with pytest.raises(UsageError, match="colour"):
        recipe.render({**recipe.first_knobs(), "colour": 1})
    with pytest.raises(UsageError, match="tile"):
        recipe.render({**recipe.first_knobs(), "tile": 33})


def test_no_sum_goes_through_atomics() -> None:
    """On a device atomic sums of floats flush denormals to zero, which the emulation does not.
    Integers are counted by them, and floats are added by a comparison of their bits."""
    for recipe in ALL:
        for knobs in sample(recipe, 3):
            found = re.findall(r"\batomicAdd\(.*", recipe.render(knobs))
            assert [line for line in found if not re.search(r"&(counts?|own)\b", line)] == []


@pytest.mark.slow
def test_the_example_is_screened(stand_for: Callable[[str], EmulatedStand]) -> None:
    assert_screened(stand_for("spmm_csr"), EXAMPLE.read_text("utf-8"))


def test_a_mistake_is_seen(stand_for: Callable[[str], EmulatedStand]) -> None:
    """The trials of this file are worth something: without its tail a recipe fails them."""
    stand, recipe = stand_for("spmm_csr"), get("spmm_csr", "row-par", "cuda")
    source = recipe.render(recipe.first_knobs()).replace(
        "p < end; p += LANES", "p < end - 1; p += LANES"
    )
    with pytest.raises(AssertionError, match=r"exact bits|G1|G3|probe"):
        assert_answers_agree(stand, source, 1)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", SCREENED, ids=lambda r: f"{r.problem}-{r.family}")
def test_defaults_and_sampled_knobs_are_screened(
    recipe: Recipe, stand_for: Callable[[str], EmulatedStand]
) -> None:
    stand = stand_for(recipe.problem)
    for knobs in tried_knobs(recipe, is_default=True):
        assert_screened(stand, recipe.render(knobs))


@pytest.mark.slow
@sampled_recipe
def test_answers_agree_with_float64(
    recipe: Recipe, stand_for: Callable[[str], EmulatedStand]
) -> None:
    stand = stand_for(recipe.problem)
    for seed, knobs in enumerate(tried_knobs(recipe, is_default=False)):
        assert_answers_agree(stand, recipe.render(knobs), seed)


@pytest.mark.slow
@sampled_recipe
def test_sampled_knobs_build(
    recipe: Recipe, stand_for: Callable[[str], EmulatedStand], tmp_path: Path
) -> None:
    session = stand_for(recipe.problem).session
    subject = session.problem.structure(session.problem.default_workload)
    workshop = replace(session.workshop, folder=tmp_path)
    # Of a sample each is built for one target, in turn.
    turn = SAMPLED.index(recipe) % len(TARGETS)
    for knobs in tried_knobs(recipe, is_default=False):
        source = recipe.render(knobs)
        plan = planned(source)
        for target in TARGETS if IS_WHOLE else TARGETS[turn : turn + 1]:
            built = build(workshop, source, plan.kernels, target)
            assert isinstance(built, DeviceBuilt), (knobs, built)
            launches = resolve(plan, session.problem, subject.axes, features(subject), target)
            assert isinstance(launches, Launches), launches
            fault = check_built(launches, built.kernels, target, plan)
            assert fault is None, (knobs, target.name, fault)
