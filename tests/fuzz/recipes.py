"""Knobs and hints with anything in them: a candidate whose front matter tells them, or an error."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from hypothesis import strategies as st

from kernelwright.agents.brains.recipe import RecipeCoder
from kernelwright.agents.roles import Member, Situation
from kernelwright.errors import UsageError
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.recipe import Recipe
from kernelwright.kernelbench.recipes.catalogue import RECIPES, recipes_for
from kernelwright.sandbox.plan import Plan, parse
from kernelwright.tests.cli import stored
from kernelwright.tests.fuzz.target import JSON, Target, attempt
from kernelwright.traces.records import Advice, Depth, Status, candidate_id

FACTS = ("M", "N", "K", "nnz", "avg_row", "max_row", "cv_row", "cpus", "vector_bytes")


@st.composite
def _knobs(draw: st.DrawFn) -> tuple[Recipe, dict[str, Any]]:
    recipe = draw(st.sampled_from(RECIPES))
    knobs: dict[str, Any] = {k.name: draw(st.sampled_from(k.values)) for k in recipe.knobs}
    names = st.sampled_from([*knobs, "other"])
    changed = draw(st.dictionaries(names, JSON | st.sampled_from((True, 1.0, "1")), max_size=2))
    gone = draw(st.lists(names, max_size=1))
    return recipe, {k: v for k, v in {**knobs, **changed}.items() if k not in gone}


def check_knobs(drawn: tuple[Recipe, dict[str, Any]]) -> None:
    """What is rendered says in its front matter which recipe and which knobs it came from."""
    recipe, knobs = drawn
    source = attempt(lambda: recipe.render(knobs), UsageError)
    if isinstance(source, UsageError):
        assert source.hint
        return
    _, head, rest = re.split(r"^(?:/\*)?---(?:\*/)?$", source, maxsplit=2, flags=re.M)
    matter = tomllib.loads(head)
    assert matter["language"] == recipe.language
    assert matter["recipe"] == {"family": recipe.family, "knobs": knobs}
    if recipe.language == "cpp":
        assert f"void {recipe.problem}(" in rest
    else:
        plan = parse(source, recipe.language)
        assert isinstance(plan, Plan), plan


@st.composite
def _advised(draw: st.DrawFn) -> tuple[str, list[tuple[Recipe, dict[str, Any]]], Any, Any, int]:
    problem = draw(st.sampled_from(sorted({recipe.problem for recipe in RECIPES})))
    recipes = recipes_for(problem)
    names = st.sampled_from(["family", "other", *(k.name for r in recipes for k in r.knobs)])
    hints = st.dictionaries(names, JSON | st.lists(st.integers(0, 64), max_size=4), max_size=3)
    parents = draw(st.lists(st.tuples(st.sampled_from(recipes), hints), max_size=3))
    facts = draw(st.dictionaries(st.sampled_from(FACTS), st.floats(0, 1e9), max_size=4))
    return problem, parents, facts, draw(st.integers()), draw(st.integers(0, 40))


def check_advice(drawn: tuple[str, list[tuple[Recipe, dict[str, Any]]], Any, int, int]) -> None:
    """Whatever a Judge hints at, the Coder proposes a legal point that it has not seen."""
    problem, parents, facts, seed, at = drawn
    members = tuple(_member(number, *parent) for number, parent in enumerate(parents, 1))
    recipes = recipes_for(problem)
    situation = Situation(
        problem=registry.get(problem),
        target="cpu",
        language="cpp",
        facts=facts,
        round=at,
        seed=seed,
        parents=members,
        seen=frozenset(m.candidate for m in members),
    )
    proposal = RecipeCoder(recipes).propose(situation)
    if proposal is None:
        assert sum(recipe.size(facts) for recipe in recipes) <= len(members)
        return
    (recipe,) = [recipe for recipe in recipes if recipe.family == proposal.family]
    assert recipe.is_legal(proposal.knobs, facts)
    assert candidate_id(proposal.source) not in situation.seen
    check_knobs((recipe, proposal.knobs))


def _member(number: int, recipe: Recipe, hints: dict[str, Any]) -> Member:
    source = recipe.render(recipe.first_knobs())
    candidate = candidate_id(source)
    return Member(
        candidate=candidate,
        number=number,
        source=source,
        language="cpp",
        family=recipe.family,
        knobs=recipe.first_knobs(),
        verdict=stored.verdict(1, Status.SCREENED, Depth.SCREEN),
        advice=Advice(candidate=candidate, bottleneck="b", change="c", hints=hints),
    )


TARGETS = (
    Target("knobs", _knobs(), check_knobs, 60),
    Target("advice", _advised(), check_advice, 30),
)
