"""The version of the prompts: every file that words them counts, and none can be forgotten."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelwright.agents.brains.llm_coder import LlmCoder
from kernelwright.agents.model import Ask
from kernelwright.agents.prompting import version
from kernelwright.agents.roles import Mode
from kernelwright.agents.workflows import admission
from kernelwright.tests.agents.brains.answers import (
    answers,
    at,
    briefing_of,
    code,
    failed,
    passed,
    situation,
)
from kernelwright.tests.agents.spoken import kernel, play, reply
from kernelwright.tests.agents.wording import copied, reword
from kernelwright.tests.sampling import TURN, at_most
from kernelwright.traces.store import Store

LEAST_WORDS = 4
"""Of a sentence; shorter texts stand in prompts by chance."""
RECORDED = ("sandbox", "verifier", "traces")
"""Rooms whose words reach prompts as facts: what referee, compiler and store said is recorded."""
PACKAGE = version.PACKAGE


def now() -> str:
    return admission.version_of("forge", asks_models=True)


def test_every_file_that_words_prompts_is_in_their_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each is edited alone: the version is another one each time, and the old one again after. A
    run tries every fourth or fifth of them, others than the day before."""
    before = now()
    copy = copied(monkeypatch, tmp_path)
    assert now() == before
    found = {before}
    files = [file for file in copy.rglob("*") if file.is_file()]
    tried = at_most(len(files) // 4, sorted(files), TURN)
    for file in tried:
        content = file.read_bytes()
        file.write_bytes(content + b"\n")
        found.add(now())
        file.write_bytes(content)
        assert now() == before
    assert len(found) == len(tried) + 1
    names = {file.name for file in files}
    tables = {"metric_words.toml", "hack_cases.toml", "techniques.toml", "metrics.toml"}
    modules = {"history.py", "history_text.py", "figures.py", "target_card.py", "llm_judge.py"}
    modules |= {"softmax.py", "skeleton.py"}
    assert {*tables, *modules, "coder.md", "untrusted.py"} <= names


@pytest.mark.parametrize("room", version.WORDED_IN)
@pytest.mark.parametrize("name", ["new.py", "new.toml", "templates/new.md", "deep/er/new.txt"])
def test_a_new_file_is_in_it_as_soon_as_it_is_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, room: str, name: str
) -> None:
    new = copied(monkeypatch, tmp_path) / room / name
    before = now()
    new.parent.mkdir(parents=True, exist_ok=True)
    new.write_text("Do what was never done.", "utf-8")
    assert now() != before


def test_what_is_compiled_beside_them_is_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cache = copied(monkeypatch, tmp_path) / "agents" / "prompting" / "__pycache__"
    before = now()
    cache.mkdir()
    (cache / "parts.cpython-311.pyc").write_bytes(b"bytes")
    assert now() == before


def test_a_sentence_of_the_history_is_another_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = now()
    reword(monkeypatch, tmp_path)
    assert now() != before


def test_every_sentence_of_a_prompt_stands_in_a_file_that_counts(store: Store) -> None:
    """Whoever words a prompt anywhere else in the package is found out here."""
    spoken = _squeezed("\n".join(said for said in every_prompt(store)))
    counted = set(version.files())
    outside = [
        f"{file.relative_to(PACKAGE)}: {text[:80]}"
        for file in product_files()
        if file not in counted
        for text in sentences(file.read_text("utf-8"))
        if text in spoken
    ]
    assert outside == []
    inside = {
        file.name
        for file in counted
        if file.suffix == ".py"
        for text in sentences(file.read_text("utf-8"))
        if text in spoken
    }
    # The search sees what there is to see.
    assert {"parts.py", "history.py", "history_text.py", "digest_text.py", "words.py"} <= inside
    assert {"figures.py", "llm_coder.py", "untrusted.py"} <= inside


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ('TOLD = "Do not repeat what was tried."', ["Do not repeat what was tried."]),
        ('told = f"{n} times the best before {x}"', ["times the best before"]),
        ('"""A module that says what it knows."""', []),
        ('def f():\n    """What a function does, in words."""', []),
        ('x = "two words"', []),
    ],
)
def test_the_search_reads_sentences_and_no_docstrings(code: str, found: list[str]) -> None:
    assert list(sentences(code)) == found


def every_prompt(store: Store) -> Iterator[str]:
    """Of each workflow, with failures, wrong answers, copies and a reply that holds nothing."""

    def answer(count: int, ask: Ask) -> str:
        if count == 5:
            return "I would rather not."
        fault = {1: "BUILD_FAILED", 2: "INCORRECT", 7: "CRASHED"}.get(count, "")
        step = 3 if ask.purpose == "repair" and count > 8 else count
        return reply(kernel(step, fault=fault))

    evolved = {"proposals": 4, "islands": 1, "exemplars": 2, "reflect_every": 1}
    for workflow, rounds, options in (
        ("forge", 7, {}),
        ("best_of_n", 6, {}),
        ("contrast", 4, {}),
        ("features", 2, {}),
        ("transpile", 9, {}),
        ("evolve", 5, evolved),
    ):
        played = play(store, workflow, answer, rounds=rounds, options=options)
        yield from (said.text for said in played.asked)
    for problem, language in (("softmax", "cpp"), ("spmm_csr", "triton"), ("gemm", "cuda")):
        now = situation(problem, language)
        for mode, base in (
            (Mode.WRITE, None),
            (Mode.OPTIMISE, passed("x", now)),
            (Mode.REPAIR, failed("x", now)),
        ):
            model = answers(code())
            LlmCoder(model, briefing_of(now)).propose(at(now, mode=mode, base=base))
            yield model.prompt(0)


def product_files() -> Iterator[Path]:
    """The modules that may word something, tests and what only records aside."""
    for file in sorted(PACKAGE.rglob("*.py")):
        room = file.relative_to(PACKAGE).parts[0]
        if room not in (*RECORDED, "tests", "benchmarks") and not room.startswith("."):
            yield file


def sentences(code: str) -> Iterator[str]:
    """Texts of so many words in a module, docstrings aside; of a formatted one its plain parts."""
    tree = ast.parse(code)
    prose = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            text = _squeezed(node.value)
            if sum(word.isalpha() for word in re.split(r"[\s,.;:]+", text)) >= LEAST_WORDS:
                yield text


def _squeezed(text: str) -> str:
    return " ".join(text.split())
