"""The ensemble: a bandit that is a function of outcomes, seed and place, and of nothing else."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.agents.model import Ask, CostBound, TokenUsage
from kernelwright.agents.models.ensemble import CallOutcome, Ensemble, choose, fold
from kernelwright.agents.models.scripted import Script, ScriptedModel
from kernelwright.errors import UsageError
from kernelwright.tests.agents.models.conftest import asked
from kernelwright.traces.place import Place

NAMES = ("openai/a", "openai/b", "openai/c")


def outcome(place: str, model: str, gain: float, usd: float | None = 0.01) -> CallOutcome:
    return CallOutcome(place=place, model=model, gain=gain, usd=usd, tokens=1000)


outcomes = st.lists(
    st.builds(
        CallOutcome,
        place=st.text("0123456789/", min_size=1, max_size=3),
        model=st.sampled_from((*NAMES, "openai/gone")),
        gain=st.floats(0, 2),
        usd=st.none() | st.floats(0, 1),
        tokens=st.integers(0, 10_000),
    ),
    unique_by=lambda each: each.place,
    max_size=12,
)


@given(outcomes, st.randoms(use_true_random=False), st.integers(), st.text(max_size=5))
def test_s6_the_state_is_the_same_in_any_order(
    told: list[CallOutcome], shuffler: random.Random, seed: int, place: str
) -> None:
    """S6: rebuilt from the same outcomes, however they arrive, it chooses the same."""
    again = list(told)
    shuffler.shuffle(again)
    arms = fold(NAMES, told)
    assert fold(NAMES, again) == arms
    assert fold(NAMES, [*again, *told]) == arms
    assert choose(arms, seed=seed, place=place) == choose(
        fold(NAMES, again), seed=seed, place=place
    )
    assert choose(arms, seed=seed, place=place) in NAMES


def test_every_model_is_tried_before_any_is_preferred() -> None:
    told = [outcome("0/0", "openai/a", 1.0), outcome("0/1", "openai/b", 0.0)]
    arms = fold(NAMES, told)
    assert {choose(arms, seed=s, place=Place.parse("1/0")) for s in range(50)} == {"openai/c"}


def test_the_slots_of_the_first_generation_are_spread() -> None:
    arms = fold(NAMES, ())
    found = Counter(choose(arms, seed=7, place=Place.parse(f"0/{slot}")) for slot in range(300))
    assert all(found[name] > 50 for name in NAMES)


def test_improvement_per_dollar_decides_and_not_improvement() -> None:
    told = [outcome(f"0/{i}", "openai/a", 0.2, 0.10) for i in range(30)]
    told += [outcome(f"1/{i}", "openai/b", 0.1, 0.01) for i in range(30)]
    told += [outcome(f"2/{i}", "openai/c", 0.0, 0.01) for i in range(30)]
    found = Counter(
        choose(fold(NAMES, told), seed=1, place=Place.parse(f"3/{i}")) for i in range(200)
    )
    assert found["openai/b"] > 150
    # Nobody is forgotten: the noise of a few failures must not be final.
    assert found["openai/a"] > 0
    assert found["openai/c"] > 0


def test_without_a_price_tokens_are_compared() -> None:
    told = [outcome(f"0/{i}", "openai/a", 0.1, None) for i in range(20)]
    told += [
        CallOutcome(place=f"1/{i}", model="openai/b", gain=0.1, usd=0.0, tokens=100_000)
        for i in range(20)
    ]
    found = Counter(
        choose(fold(NAMES[:2], told), seed=1, place=Place.parse(f"3/{i}")) for i in range(100)
    )
    assert found["openai/a"] > found["openai/b"]


class Priced(ScriptedModel):
    """Costs what it is told."""

    def __init__(self, name: str, usd: float | None) -> None:
        super().__init__(name, Script())
        self._usd = usd
        self.is_closed = False

    def bound(self, ask: Ask) -> CostBound:
        return CostBound(ask.max_output_tokens, self._usd)

    def cost(self, usage: TokenUsage) -> float | None:
        return None if self._usd is None else self._usd * (1 + usage.tokens)

    def close(self) -> None:
        self.is_closed = True


def test_an_ensemble_is_a_model_that_learns() -> None:
    models = [Priced("openai/a", 0.1), Priced("openai/b", 0.3)]
    both = Ensemble(models, seed=3)
    assert both.name == "openai/a+openai/b"
    assert both.bound(asked()).usd == 0.3
    assert both.cost(TokenUsage()) == 0.3
    for i in range(40):
        both.tell(outcome(f"0/{i}", both.at(f"0/{i}").name, 0.0))
    for i in range(20):
        both.tell(outcome(f"1/{i}", "openai/b", 1.0))
    assert Counter(both.at(f"2/{i}").name for i in range(100)).most_common(1)[0][0] == "openai/b"
    both.close()
    assert all(model.is_closed for model in models)


def test_b2_an_ensemble_with_an_unpriced_model_has_no_price() -> None:
    """B2: the dearest known price is no bound for an unknown one."""
    both = Ensemble([Priced("openai/a", 0.1), Priced("openai/b", None)])
    assert both.bound(asked()).usd is None
    assert both.cost(TokenUsage()) is None


def test_s6_a_resumed_ensemble_goes_on_the_same_way() -> None:
    """S6: told the same outcomes again, from any point on, it makes the same choices."""

    def play(both: Ensemble, begin: int) -> list[str]:
        names = []
        for i in range(begin, 60):
            names.append(both.at(f"{i}").name)
            both.tell(outcome(f"{i}", names[-1], 0.3 if names[-1] == "openai/b" else 0.1))
        return names

    fresh = [Priced("openai/a", 0.1), Priced("openai/b", 0.1)]
    whole = play(Ensemble(fresh, seed=5), 0)
    for cut in (1, 7, 30, 59):
        resumed = Ensemble(fresh, seed=5)
        for i in reversed(range(cut)):
            name = whole[i]
            resumed.tell(outcome(f"{i}", name, 0.3 if name == "openai/b" else 0.1))
        assert play(resumed, cut) == whole[cut:]


def test_one_model_twice_is_no_ensemble() -> None:
    with pytest.raises(UsageError, match="each once"):
        Ensemble([Priced("openai/a", 0.1), Priced("openai/a", 0.1)])
