"""Prompts: strict rendering, every problem in every language, and examples that are candidates."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.agents.brains.llm_coder import LlmCoder
from kernelwright.agents.brains.llm_judge import LlmJudge
from kernelwright.agents.brains.rules import RuleJudge
from kernelwright.agents.brains.soft_verifier import LlmSoftVerifier
from kernelwright.agents.model import Finish
from kernelwright.agents.prompting import render as prompting
from kernelwright.agents.prompting.parts import Briefing
from kernelwright.agents.roles import Mode, Situation
from kernelwright.agents.text.candidate_text import extract
from kernelwright.agents.text.found import FoundSource
from kernelwright.kernelbench.languages import LANGUAGES
from kernelwright.kernelbench.precision import Precision
from kernelwright.kernelbench.problem import Problem, Tensor
from kernelwright.kernelbench.registry import get, names
from kernelwright.kernelbench.targets import architecture
from kernelwright.sandbox.builders.cpp import build, prototype
from kernelwright.sandbox.builders.model import Built
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation import choose
from kernelwright.sandbox.plan import Launches, Plan, parse, resolve
from kernelwright.sandbox.run.interpreted import STEPS, programs
from kernelwright.tests.agents.brains.answers import (
    OTHER,
    SOURCE,
    answers,
    at,
    briefing_of,
    code,
    failed,
    passed,
    situation,
)
from kernelwright.traces.decisions import SoftKind

MOST = 30_000
"""Characters of a prompt; some 6,000 tokens."""


@pytest.mark.parametrize("name", prompting.names())
def test_a7_every_variable_appears_once(name: str) -> None:
    wanted = prompting.variables(name)
    text = prompting.render(name, **{each: f"«{each}»" for each in wanted})
    assert {each: text.count(f"«{each}»") for each in wanted} == dict.fromkeys(wanted, 1)
    assert "{{" not in text
    assert "{%" not in text


@pytest.mark.parametrize("name", [n for n in prompting.names() if prompting.variables(n)])
def test_a7_a_missing_an_unknown_and_an_odd_variable_are_errors(name: str) -> None:
    wanted = dict.fromkeys(prompting.variables(name), "text")
    left_out = sorted(wanted)[0]
    with pytest.raises(prompting.PromptError, match=f"{left_out} is missing"):
        prompting.render(name, **{k: v for k, v in wanted.items() if k != left_out})
    with pytest.raises(prompting.PromptError, match="stray is not used"):
        prompting.render(name, **wanted, stray="text")
    with pytest.raises(prompting.PromptError, match=f"{left_out} is no text"):
        prompting.render(name, **{**wanted, left_out: 3})  # type: ignore[arg-type]


SECTIONS = {
    "signature": "## Signature",
    "axes": "## Axes",
    "tensors": "## Tensors",
    "workload": "## The timed workload",
    "precision": "## Precision and inputs",
    "timing": "## How it is evaluated",
    "card": "## The target",
}


def test_a7_every_part_of_the_task_stands_in_its_section() -> None:
    values = {each: f"«{each}»" for each in prompting.variables("write")}
    text = prompting.render("write", **values)
    for variable, heading in SECTIONS.items():
        before = text.partition(f"«{variable}»")[0]
        last = [line for line in before.splitlines() if line.startswith("#")][-1]
        assert last.startswith(heading)


def test_values_are_not_rendered_again() -> None:
    text = prompting.render("again_json", problem="{{ 7 * 7 }} {% if x %}", kept="")
    assert "{{ 7 * 7 }} {% if x %}" in text


def every_mode(now: Situation) -> dict[Mode, Situation]:
    base = passed(SOURCE, now)
    broken = failed(SOURCE, now, log="error: " + "x" * 100_000)
    pair = (passed(SOURCE, now, 200.0), passed(OTHER, now, 100.0))
    return {
        Mode.WRITE: at(now, mode=Mode.WRITE),
        Mode.REPAIR: at(now, mode=Mode.REPAIR, base=broken),
        Mode.OPTIMISE: at(now, mode=Mode.OPTIMISE, base=base),
        Mode.CROSS_OVER: at(now, mode=Mode.CROSS_OVER, exemplars=pair),
        Mode.CONTRAST: at(now, mode=Mode.CONTRAST, exemplars=pair),
        Mode.FEATURES: at(now, mode=Mode.FEATURES, base=base, features=("loop-unrolling",)),
        Mode.TRANSLATE: at(now, mode=Mode.TRANSLATE, source="__global__ void k() {}"),
        Mode.CONVERT: at(now, mode=Mode.CONVERT, source="def f(x): return x"),
    }


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", names())
def test_every_prompt_renders_for_every_problem_and_language(name: str, language: str) -> None:
    now = situation(name, language)
    briefing = briefing_of(now)
    problem = get(name)
    sizes = {}
    for mode, assigned in every_mode(now).items():
        asker = answers("no candidate")
        LlmCoder(asker, briefing).propose(assigned)
        text = asker.prompt(0)
        sizes[mode] = len(text)
        assert problem.definition in text
        assert all(f"- {tensor.name}: {tensor.dtype}" in text for tensor in problem.tensors)
        assert briefing.card.title in text
    asker = answers("{}")
    judge = LlmJudge(asker, briefing, RuleJudge())
    judge.diagnose(passed(SOURCE, now), now)
    judge.diagnose(failed(SOURCE, now), now)
    for kind in SoftKind:
        LlmSoftVerifier(asker, briefing, votes=1).opinion(kind, SOURCE, now)
    sizes |= {ask.purpose: len(asker.prompt(n)) for n, (_, ask) in enumerate(asker.asked)}
    assert max(sizes.values()) <= MOST, sizes


@pytest.mark.parametrize("name", names())
def test_the_precision_is_told_by_the_rules_of_the_problem_alone(name: str) -> None:
    now = situation(name)
    asker = answers("no candidate")
    LlmCoder(asker, briefing_of(now)).propose(now)
    told = asker.prompt().partition("## Precision and inputs")[2].partition("\n## ")[0]
    assert get(name).accuracy
    assert get(name).accuracy in told
    others = {"softmax": "mask", "norm": "whole row", "gemm": "running sum"}
    if name in ("gemm", "spmm_csr", "spmv_csr", "sddmm_csr"):
        assert "running sum" in told
        del others["gemm"]
    elif "softmax" in name or "norm" in name or name == "gspmm_reduce":
        others = {}
    alien = [word for word in others.values() if word not in get(name).accuracy]
    assert not [word for word in alien if word in told]


def row_norm1() -> Problem:
    """The problem that the examples of the guides solve."""
    softmax = get("softmax")
    changed = {
        "name": "row_norm1",
        "inputs": (Tensor(name="x", dtype="float32", shape=("M", "N")),),
        "outputs": (Tensor(name="y", dtype="float32", shape=("M",)),),
        "precision": Precision(),
    }
    return Problem(**{**vars(softmax), **changed})


@pytest.mark.parametrize("language", ["cpp", "cuda", "triton"])
def test_the_example_is_a_reply_that_is_taken(language: str) -> None:
    found = extract(prompting.render(f"example_{language}"), Finish.STOP, language)
    assert isinstance(found, FoundSource)
    assert not any("block" in note for note in found.notes)


@pytest.mark.parametrize("language", ["cuda", "triton"])
@pytest.mark.parametrize("axes", [{"M": 1, "N": 1}, {"M": 4099, "N": 70_001}])
def test_the_example_has_a_plan_that_can_be_launched(language: str, axes: dict[str, int]) -> None:
    found = extract(prompting.render(f"example_{language}"), Finish.STOP, language)
    assert isinstance(found, FoundSource)
    plan = parse(found.source, language)
    assert isinstance(plan, Plan)
    launches = resolve(plan, row_norm1(), axes, {}, architecture("sm_90"))
    assert isinstance(launches, Launches), launches


def test_the_example_in_triton_is_short_enough_for_the_interpreter() -> None:
    found = extract(prompting.render("example_triton"), Finish.STOP, "triton")
    assert isinstance(found, FoundSource)
    plan = parse(found.source, "triton")
    assert isinstance(plan, Plan)
    launches = resolve(plan, row_norm1(), {"M": 8192, "N": 512}, {}, architecture("sm_90"))
    assert isinstance(launches, Launches), launches
    assert 2 * programs(launches) <= STEPS, "a load and a store each"


def test_the_example_in_cpp_builds(tmp_path: Path) -> None:
    found = extract(prompting.render("example_cpp"), Finish.STOP, "cpp")
    assert isinstance(found, FoundSource)
    declared = prototype(row_norm1())
    built = build(Workshop(choose(), tmp_path), found.source, declared, "row_norm1")
    assert isinstance(built, Built), built


@pytest.mark.parametrize(("problem", "is_told"), [("spmm_csr", True), ("softmax", False)])
def test_only_who_has_a_pattern_is_told_of_preparing_it(problem: str, is_told: bool) -> None:
    now = situation(problem)
    asker = answers("no")
    LlmCoder(asker, briefing_of(now)).propose(now)
    assert (f"void {problem}_prepare(int M" in asker.prompt(0)) == is_told
    assert ("const void* plan" in asker.prompt(0)) == is_told


def test_no_example_solves_a_problem_of_the_registry() -> None:
    assert "row_norm1" not in names()


def test_the_prompt_says_whether_a_gpu_result_is_emulated_or_measured() -> None:
    now = situation("softmax", "cuda")
    emulated = briefing_of(now)
    measured = Briefing(emulated.card.model_copy(update={"is_emulated": False}))
    for briefing, word in ((emulated, "SCREENED (emulated)"), (measured, "L2 cache is flushed")):
        asker = answers("no")
        LlmCoder(asker, briefing).propose(now)
        assert word in asker.prompt(0)


def test_only_baselines_that_run_on_the_target_are_named() -> None:
    for language, has_cupy in (("cpp", False), ("cuda", True)):
        now = situation("gemm", language)
        card = briefing_of(now).card.model_copy(update={"is_emulated": False})
        asker = answers("no")
        LlmCoder(asker, Briefing(card)).propose(now)
        assert "torch eager" in asker.prompt(0)
        assert ("cupy" in asker.prompt(0)) == has_cupy


def test_the_same_situation_gives_the_same_prompt() -> None:
    now = situation("spmm_csr")
    texts = []
    for _ in range(2):
        asker = answers(code())
        LlmCoder(asker, briefing_of(now)).propose(every_mode(now)[Mode.REPAIR])
        texts.append(asker.prompt(0))
    assert texts[0] == texts[1]
