"""The one registry of languages, and that each floor knows every language in its one table."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest
from pygments.lexers import get_lexer_by_name

from kernelwright.agents.prompting import guides, render
from kernelwright.agents.text import shape
from kernelwright.errors import UnknownNameError
from kernelwright.kernelbench import languages as known
from kernelwright.kernelbench.languages import LANGUAGES, Language, Tier, tier_of
from kernelwright.kernelbench.skeleton import WRITERS
from kernelwright.kernelbench.targets import target_of
from kernelwright.sandbox.front_matter import read_comment, read_docstring
from kernelwright.sandbox.plan.dialects import DIALECTS
from kernelwright.verifier.stands import gpu_tools, programs

ROOT = Path(known.__file__).parents[1]
ALL = list(LANGUAGES.values())


def test_each_floor_knows_every_language() -> None:
    on_gpu = {each for each in ALL if each.is_for_gpu}
    assert set(programs.BUILT) == set(ALL) - on_gpu
    assert set(gpu_tools.MAKERS) == on_gpu
    assert set(WRITERS) == set(ALL)
    assert set(DIALECTS) == {each for each in ALL if each.has_launch_plan}
    assert set(shape.SHAPES) == set(guides.GUIDES) == set(ALL)
    prompts = set(render.names())
    assert {f"guide_{each}" for each in ALL} | {f"example_{each}" for each in ALL} <= prompts


@pytest.mark.parametrize("language", ALL, ids=str)
def test_what_the_frame_writes_its_reader_reads(language: Language) -> None:
    matter = 'language = "x"\n'
    head = language.syntax.head(matter, ["A line for people.", ""])
    if language.syntax is known.Syntax.C:
        assert read_comment(head + "int x;\n").facts == tomllib.loads(matter)
    else:
        assert read_docstring(ast.parse(head), head).facts == tomllib.loads(matter)
        ast.parse(language.syntax.head())
    assert head.count("A line for people.") == 1


@pytest.mark.parametrize("language", ALL, ids=str)
def test_every_language_has_a_place_to_run(language: Language) -> None:
    assert language.runs_on(target_of(language.example_target))
    assert not language.runs_on(target_of("cpu" if language.is_for_gpu else "sm_80"))
    assert get_lexer_by_name(language.markup)


def test_names_and_endings() -> None:
    assert known.languages_on(target_of("cpu"))[0] is known.CPP
    assert known.languages_on(target_of("sm_90a"))[0] is known.CUDA
    assert known.languages_of_suffix(".py") == (known.TRITON, known.PYTHON)
    assert known.languages_of_suffix(".txt") == ()
    assert (tier_of("cpp"), tier_of("python")) == (Tier.NATIVE, Tier.HOST_CODE)
    assert tier_of("rust") is Tier.DEVICE_ONLY
    with pytest.raises(UnknownNameError, match="'cdua'"):
        known.language_of("cdua")


def test_nobody_compares_names_of_languages() -> None:
    """A branch by language is a question to Language, or an entry of a floor's table."""
    found = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for file in ROOT.rglob("*.py")
        if file.relative_to(ROOT).parts[0] not in ("tests", "benchmarks", ".venv")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Compare)
        and "language" in ast.unparse(node)
        and any(isinstance(n, ast.Constant) and n.value in LANGUAGES for n in ast.walk(node))
    ]
    assert found == []
