# SPDX-License-Identifier: Apache-2.0
"""`transpile`: a foreign source becomes a candidate, then a faster one (after HPCTransCompile).

check → admit → (judge →) propose → evaluate → promote → decide → admit. CUDA is translated to C++
for the CPU, PyTorch converted to the campaign's language. A PyTorch source that can run here is
first held against the problem itself, as a candidate in Python: the Coder is told where it computes
something else. Three fixes at most, on the compiler's words or the first element that differs. Once
it is right, its named constants are tried doubled and halved, without a model; then four rounds of
optimisation at most, each on a Judge's advice and on the best so far, or `forge` or `evolve` take
over with the best as their seed. Right is what the problem's oracle says.
"""

from __future__ import annotations

from typing import Literal, TypedDict

from langgraph.graph import END, START, StateGraph
from pydantic import Field

from ...errors import UsageError
from ...kernelbench.languages import CPP, PYTHON
from ...kernelbench.problem import Problem
from ...kernelbench.targets import target_of
from ...traces.decisions import HandedOver, ModuleChecked, NothingLeft
from ...traces.events import CampaignStarted
from ...traces.place import Place
from ...traces.records import Record
from ..books.candidate import choose_better
from ..books.request import CampaignRequest
from ..prompting.words import source_checked
from ..roles import Assignment, Mode, Proposal
from ..text import foreign_source
from ..text.constants import ConstantVariant, variants
from ..text.tunable import find_tunable
from . import chain, driver, steps
from .loop import Loop
from .rules import Questions, Rules
from .workflow import find_workflow

CHECK, HAND_OVER = Place(slot="source"), Place(slot="hand-over")
TRANSLATE, FIX, TUNE, OPTIMISE = "translate", "fix", "tune", "optimise"
"""What a round is."""


class Settings(Record):
    """What may be set."""

    check: bool = True
    """Whether a PyTorch source is held against the problem first, where it can run."""
    fixes: int = Field(default=3, ge=0)
    """Until the translation is right (HPCTransCompile's prompts, our number)."""
    tunings: int = Field(default=4, ge=0)
    """Variants of the right translation with another constant."""
    optimisations: int = Field(default=4, ge=0)
    hand_over: Literal["", "forge", "evolve"] = ""
    """Who goes on with the right translation, in place of rounds of optimisation."""


class State(TypedDict, total=False):
    """The cursor. Every key takes the last value written."""

    round: int
    kind: str
    """What this round is."""
    current: str | None
    """The candidate of this round."""
    base: str | None
    """What the next round edits."""
    first: str | None
    """The first right translation: what is tuned."""
    best: str | None
    champion: str | None
    fixes: int
    tunings: int
    optimisations: int
    stopped_by: str


START_STATE: State = {
    "round": 0,
    "kind": TRANSLATE,
    "current": None,
    "base": None,
    "first": None,
    "best": None,
    "champion": None,
    "fixes": 0,
    "tunings": 0,
    "optimisations": 0,
}


def check(request: CampaignRequest) -> None:
    """Refuses a source that is neither CUDA nor PyTorch, or that cannot go where it should.

    Raises:
        UsageError: with the remedy.
    """
    if not request.source.strip():
        raise UsageError("transpile needs a source to begin from", hint="give it: --from FILE")
    if foreign_source.is_cuda(request.source):
        if request.language != CPP.name:
            raise UsageError(
                f"a CUDA source is translated to C++ for cpu, not to {request.language}",
                hint="--target cpu --language cpp; `forge` improves CUDA kernels",
            )
    elif not foreign_source.is_torch(request.source):
        raise UsageError(
            "the source is neither CUDA (no __global__ function) nor PyTorch (no import of torch)",
            hint="give a .cu or a .py file",
        )


def settings(loop: Loop) -> Settings:
    """Those of the campaign."""
    return Settings.model_validate(loop.asked.options)


def translation(place: Place, source: str, checked: str = "") -> Assignment:
    """A first candidate out of the source.

    Args:
        checked: What the referee found of the source itself, in words.
    """
    mode = Mode.TRANSLATE if foreign_source.is_cuda(source) else Mode.CONVERT
    told = (*foreign_source.facts(source), *([checked] if checked else ()))
    return Assignment(place=place, mode=mode, source=source, told=told)


def check_module(state: State, loop: Loop) -> State:
    """Has the PyTorch source itself verified, where it can run."""
    del state
    is_here = (
        target_of(loop.target).is_cpu
        and settings(loop).check
        and not foreign_source.is_cuda(loop.source)
    )
    text = foreign_source.as_module(loop.source) if is_here else ""
    if not text or loop.progress.find_decision(CHECK, ModuleChecked):
        return {}
    if by := steps.why_not_admitted(loop, CHECK):
        return {"stopped_by": by}
    itself = Proposal(text, PYTHON.name, str(CHECK), {}, str(CHECK), strategy="the source itself")
    candidate = steps.record(loop, itself, CHECK)
    if candidate is None:
        return {}
    verdict = steps.screen(loop, candidate)
    told = source_checked(verdict)
    found = ModuleChecked(candidate=candidate, status=str(verdict.status), told=told)
    loop.ledger.decide(CHECK, found)
    return {}


def admit(state: State, loop: Loop) -> State:
    """Whether another round may begin, and what it is."""
    if "stopped_by" in state:
        return {}
    # Where another workflow takes over, the user's number is of its rounds.
    last = None if settings(loop).hand_over else loop.asked.rounds
    if last is not None and state["round"] >= last:
        return {"stopped_by": "rounds"}
    kind = _kind(state, loop)
    if by := _why_ended(state, kind, loop) or steps.why_not_admitted(loop, _place(state)):
        return {"stopped_by": by}
    return {"kind": kind}


def judge(state: State, loop: Loop) -> State:
    """One diagnosis of what is about to be optimised."""
    steps.judge(loop, _assignment(state, loop))
    return {}


def propose(state: State, loop: Loop) -> State:
    """A translation, a fix, another constant or an optimisation."""
    base, first = state["base"], state["first"]
    if steps.why_nothing_left(loop, _place(state)):
        return {"current": None}
    if state["kind"] == TUNE and first:
        variant = _variants(first, loop)[state["tunings"]]
        tuned = Proposal(variant.source, loop.language, "model", {}, TUNE, (first,), variant.change)
        return {"current": steps.record(loop, tuned, _place(state))}
    return {"current": steps.propose(loop, _assignment(state, loop), (base,) if base else ())}


def decide(state: State, loop: Loop) -> State:
    """What the next round edits: what failed, until one is right, then always the best."""
    current, kind, number = state["current"], state["kind"], state["round"]
    if why := steps.why_nothing_left(loop, _place(state)):
        place, base = _place(state), state["base"]
        left = NothingLeft(candidate=base, why=why)
        loop.ledger.decide(place, left)
        return {"stopped_by": left.what}
    leader = choose_better(loop.progress.find(state["best"]), loop.progress.find(current), number)
    best = leader.candidate if leader else None
    return {
        "round": number + 1,
        "first": state["first"] or best,
        "best": best,
        "base": best or current or state["base"],
        "fixes": state["fixes"] + (kind == FIX),
        "tunings": state["tunings"] + (kind == TUNE),
        "optimisations": state["optimisations"] + (kind == OPTIMISE),
    }


def _kind(state: State, loop: Loop) -> str:
    first = state["first"]
    if first is None or state["best"] is None:
        return FIX if state["round"] else TRANSLATE
    # What the translation itself declares was tried already (knobs.py).
    is_declared = find_tunable(loop.ledger.source(first), loop.language) is not None
    wanted = 0 if is_declared else settings(loop).tunings
    is_left = state["tunings"] < min(wanted, len(_variants(first, loop)) if wanted else 0)
    return TUNE if is_left else OPTIMISE


def _why_ended(state: State, kind: str, loop: Loop) -> str | None:
    chosen = settings(loop)
    if kind == FIX:
        return "no candidate" if state["fixes"] >= chosen.fixes else None
    if kind == TRANSLATE:
        return None
    champion = loop.progress.find(state["champion"])
    if champion and champion.is_near_roof:
        return "roofline"
    if kind == TUNE:
        return None
    if chosen.hand_over and state["best"]:
        over = HandedOver(
            to=chosen.hand_over,
            round=state["round"],
            best=state["best"],
            champion=state["champion"],
        )
        loop.ledger.decide(HAND_OVER, over)
        return over.what
    return "rounds" if state["optimisations"] >= chosen.optimisations else None


def _variants(first: str, loop: Loop) -> list[ConstantVariant]:
    return variants(loop.ledger.source(first), loop.language)


def _place(state: State) -> Place:
    return Place(state["round"], 0)


def _assignment(state: State, loop: Loop) -> Assignment:
    place, base = _place(state), loop.ledger.find_member(state["base"])
    if base is None:
        checked = loop.progress.find_decision(CHECK, ModuleChecked)
        return translation(place, loop.source, checked.told if checked else "")
    mode = Mode.OPTIMISE if state["best"] else Mode.REPAIR
    advice = loop.progress.advised.get(place)
    return Assignment(place=place, mode=mode, base=base, advice=advice)


def graph() -> StateGraph[State, Loop, State, State]:
    """The graph of the docstring."""
    chained = StateGraph(State, context_schema=Loop)
    for step in (check_module, admit, judge, propose, decide):
        chained.add_node(step.__name__, steps.node(step), input_schema=State)

    def begin(state: State) -> str:
        if state.get("stopped_by"):
            return END
        return "judge" if state["kind"] == OPTIMISE else "propose"

    chained.add_edge(START, "check_module")
    chained.add_conditional_edges(
        "check_module", lambda state: END if state.get("stopped_by") else "admit", ["admit", END]
    )
    return chain.close(chained, begin)


def run(loop: Loop) -> str:
    """Runs the campaign on; says what stopped it."""
    end = driver.run(graph(), loop, dict(START_STATE))
    over = loop.progress.find_decision(HAND_OVER, HandedOver)
    if over is None or end != over.what:
        return end
    # Imported where they are needed: most translations need neither.
    from . import evolve, forge

    follow = forge.follow if over.to == "forge" else evolve.follow
    return follow(loop, over.round, over.best, over.champion)


def _first_assignment(_problem: Problem, _started: CampaignStarted, source: str) -> Assignment:
    return translation(Place(0, 0), source)


def _questions(chosen: Settings, rounds: int | None) -> Questions:
    until_right = 1 + chosen.fixes
    if chosen.hand_over:
        rules = find_workflow(chosen.hand_over).rules
        over = rules.questions(rules.settings(), rounds)
        # Who takes over has a base from its first round on.
        return Questions(until_right + over.coder, over.judge + 1, over.aids)
    most = until_right + chosen.optimisations
    return Questions(most if rounds is None else min(most, rounds), chosen.optimisations)


RULES = Rules(run, Settings, _questions, _first_assignment, check)
