"""The Triton recipes: their launch plans, their builds for GPUs, and their answers, interpreted."""

from __future__ import annotations

import random
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.features import features
from kernelwright.kernelbench.problem import Family, Problem, Structure
from kernelwright.kernelbench.recipe import Knobs, Recipe
from kernelwright.kernelbench.recipes import recipes_for
from kernelwright.kernelbench.recipes.catalogue import RECIPES
from kernelwright.kernelbench.targets import architecture
from kernelwright.sandbox.builders.triton import TritonBuilder, TritonBuilt, TritonRequest
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation.choose import choose
from kernelwright.sandbox.isolation.model import Jail
from kernelwright.sandbox.plan import check_built
from kernelwright.sandbox.plan.declared import Plan
from kernelwright.sandbox.plan.model import Launches
from kernelwright.sandbox.plan.parse import parse
from kernelwright.sandbox.plan.resolve import resolve
from kernelwright.tests.interpreting import Part, interpreted, played
from kernelwright.tests.sampling import IS_WHOLE, one_in, some_of

HERE = Path(__file__).parent
TARGETS = ("sm_80", "sm_90", "sm_100")
ALL = [recipe for recipe in RECIPES if recipe.language == "triton"]
SMALL_BYTES = 2 << 20
HIDDEN = 5
SHARP = (Family.EXACT, Family.PROBE, Family.LARGE, Family.NONFINITE, Family.DENORMAL)
"""Families that show what random values hide."""

each_recipe = pytest.mark.parametrize("recipe", ALL, ids=lambda r: f"{r.problem}-{r.family}")
SAMPLED = one_in(2, some_of(ALL, lambda recipe: recipe.problem in ("spmm_csr", "softmax")))
"""The whole is tried on more shapes and for more targets than a sample."""
BUILT_FOR = TARGETS if IS_WHOLE else ("sm_90",)
sampled_recipe = pytest.mark.parametrize("recipe", SAMPLED, ids=lambda r: f"{r.problem}-{r.family}")


@pytest.fixture
def jail() -> Jail:
    try:
        return choose("auto")
    except PrerequisiteError as error:
        pytest.skip(f"no jail works here: {error}")


def sample(recipe: Recipe, count: int) -> list[Knobs]:
    """The default and a seeded choice of legal knobs."""
    space = list(recipe.space({}))
    return [
        recipe.first_knobs(),
        *random.Random(recipe.problem + recipe.family).sample(space, count),
    ]


def planned(source: str, problem: Problem, structure: Structure, target: str) -> Launches:
    plan = parse(source, "triton")
    assert isinstance(plan, Plan), plan
    found = resolve(plan, problem, structure.axes, features(structure), architecture(target))
    assert isinstance(found, Launches), found
    return found


def known_structures(problem: Problem) -> list[Structure]:
    """The small workloads."""
    tiny = problem.structure(problem.workload("tiny"))
    made = [problem.structure(w) for w in problem.workloads if w.kind == "adversarial"]
    return [tiny, *(s for s in made if problem.bytes_moved(s.axes) < SMALL_BYTES)]


def hidden_structures(problem: Problem) -> list[Structure]:
    """Hidden shapes; the first has a size beyond 16 bits."""
    tiny = problem.structure(problem.workload("tiny"))
    return list(islice(problem.variations(tiny, np.random.default_rng(3)), HIDDEN))


def hold(recipe: Recipe, knobs: Knobs, parts: list[Part], jail: Jail) -> None:
    """Does all of it in one process; the answers are the oracle's."""
    problem = registry.get(recipe.problem)
    ran = played(recipe.render(knobs), problem, parts, jail)
    assert ran.status is None, (knobs, ran.reason, ran.log[-2000:])
    assert ran.right == sum(part.calls * len(part.structures) for part in parts)


def test_every_problem_has_recipes() -> None:
    """Some in one of the languages of GPUs alone."""
    for problem in registry.names():
        families = [recipe.family for recipe in recipes_for(problem, "triton")]
        assert len(set(families)) == len(families)
        assert families or recipes_for(problem, "cuda"), problem


@each_recipe
def test_plan_launches_every_workload_everywhere(recipe: Recipe) -> None:
    problem = registry.get(recipe.problem)
    structures = [problem.structure(problem.default_workload), *hidden_structures(problem)[:3]]
    for knobs in sample(recipe, 1):
        source = recipe.render(knobs)
        for structure in structures:
            for target in TARGETS:
                assert planned(source, problem, structure, target).launches


@each_recipe
def test_front_matter_names_the_recipe(recipe: Recipe) -> None:
    for knobs in sample(recipe, 2):
        plan = parse(recipe.render(knobs), "triton")
        assert isinstance(plan, Plan), plan
        assert plan.facts["recipe"] == {"family": recipe.family, "knobs": knobs}


@each_recipe
def test_default_is_in_a_space_worth_searching(recipe: Recipe) -> None:
    assert recipe.is_legal(recipe.first_knobs(), {})
    assert 10 <= recipe.size({}) <= 2500
    first = recipe.first_knobs()
    for knob in recipe.knobs:
        sources = {recipe.render({**first, knob.name: value}) for value in knob.values}
        assert len(sources) == len(knob.values), knob.name


def test_products_never_round_to_tf32() -> None:
    for recipe in ALL:
        source = recipe.render(recipe.first_knobs())
        assert source.count("tl.dot(") == source.count('input_precision="ieee"')


def test_a_softmax_is_right_in_every_schedule(jail: Jail) -> None:
    recipe = recipes_for("softmax", "triton")[0]
    hold(recipe, recipe.first_knobs(), [Part([Structure({"M": 3, "N": 33})])], jail)


@pytest.mark.heavy
@pytest.mark.slow
@sampled_recipe
def test_answers_agree_with_float64(recipe: Recipe, jail: Jail) -> None:
    """In every schedule on hidden shapes, on the small workloads and a wide shape, and on each
    family that shows what random values hide. What takes longest a sample does less often."""
    problem = registry.get(recipe.problem)
    wide, *hidden = hidden_structures(problem)
    families = random.Random(recipe.family).sample(list(problem.families), 3)
    known = known_structures(problem)
    parts = [
        Part(hidden, families[0]),
        Part(known, families[1]) if IS_WHOLE else Part(known[-1:], families[1], calls=1),
        *(Part(hidden, family, calls=1) for family in SHARP if family in problem.families),
    ]
    if IS_WHOLE or recipe.problem == "softmax":
        parts.append(Part([wide], families[2], calls=1))
    hold(recipe, recipe.first_knobs(), parts, jail)


@pytest.mark.heavy
@pytest.mark.slow
@sampled_recipe
def test_other_knobs_agree_with_float64(recipe: Recipe, jail: Jail) -> None:
    problem = registry.get(recipe.problem)
    _, *hidden = hidden_structures(problem)
    families = iter(random.Random(recipe.problem).sample(list(problem.families), 2))
    for knobs in sample(recipe, 2)[1:] if IS_WHOLE else sample(recipe, 2)[1:2]:
        hold(recipe, knobs, [Part(hidden, next(families))], jail)


@pytest.mark.slow
@pytest.mark.parametrize("target", BUILT_FOR)
def test_sampled_knobs_build(target: str, jail: Jail, tmp_path: Path) -> None:
    device = architecture(target)
    with TritonBuilder(Workshop(jail, tmp_path), device) as builder:
        for recipe in SAMPLED:
            problem = registry.get(recipe.problem)
            structure = problem.structure(problem.default_workload)
            for knobs in sample(recipe, 1) if IS_WHOLE else sample(recipe, 1)[1:]:
                source = recipe.render(knobs)
                launches = planned(source, problem, structure, target)
                request = TritonRequest(source, problem, (structure,), (launches,))
                built = builder.build(request)
                assert isinstance(built, TritonBuilt), (recipe.family, knobs, built)
                fault = check_built(built.launches[0], built.device.kernels, device)
                assert fault is None, (recipe.family, knobs, fault)


@pytest.mark.heavy
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "problem"), [("spmm_rows", "spmm_csr"), ("softmax_host", "softmax")]
)
def test_examples_are_right(name: str, problem: str, jail: Jail) -> None:
    found = registry.get(problem)
    tiny = found.structure(found.workload("tiny"))
    source = (HERE / f"{name}.py").read_text("utf-8")
    ran = interpreted(source, found, [tiny], jail)
    assert ran.status is None, (ran.reason, ran.log[-2000:])
    assert ran.right == 3
