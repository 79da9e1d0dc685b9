"""`problems X --signature L` prints a file that `eval` takes as it is and finds right."""

from __future__ import annotations

from functools import partial
from itertools import product
from pathlib import Path

import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.kernelbench.languages import LANGUAGES
from kernelwright.kernelbench.policies import name_in
from kernelwright.kernelbench.registry import names, problems
from kernelwright.kernelbench.skeleton import skeleton
from kernelwright.sandbox.builders import toolchain
from kernelwright.tests.court import COMPILED, Court
from kernelwright.tests.sampling import at_most
from kernelwright.traces.records import Depth, Status

from .conftest import Command

BY_COMMAND = {
    *(("softmax", "cpp"), ("spmv_csr", "python")),
    *(("rmsnorm", "cuda"), ("bias_gelu", "triton")),
}
"""One problem of each language goes through `eval` itself, the others to a referee that is open."""
TARGETS = {"cpp": "cpu", "python": "cpu", "cuda": "sm_90", "triton": "sm_90"}
NARROWED = [name_in(problem.name, policy) for problem in problems() for policy in problem.policies]
EVERY = sorted(set(product((*names(), *NARROWED), LANGUAGES)) - BY_COMMAND)
OTHERS = at_most(12, EVERY)
"""Of all languages, with problems that differ."""


@pytest.mark.slow
@pytest.mark.parametrize(("problem", "language"), sorted(BY_COMMAND))
def test_eval_takes_a_skeleton_as_it_is(
    kw: Command, tmp_path: Path, problem: str, language: str
) -> None:
    if language == "cuda":
        try:
            toolchain.find_nvrtc()
        except PrerequisiteError as error:
            pytest.skip(str(error))
    if language == "triton":
        pytest.importorskip("triton")
    printed = kw("problems", problem, "--signature", language)
    assert (printed.code, printed.err) == (0, "")
    file = tmp_path / f"mine{LANGUAGES[language].suffix}"
    file.write_text(printed.out, encoding="utf-8")
    target = TARGETS[language]
    done = kw("eval", problem, str(file), "--target", target, "--workload", "tiny", "--json")
    found = done.document
    # SUSPECT: every answer was right, and a busy machine's clocks could not be believed.
    wanted = ("VERIFIED", "SUSPECT") if target == "cpu" else ("SCREENED",)
    assert found["status"] in wanted, (found["reasons"], done.err)


@pytest.mark.slow
@pytest.mark.parametrize(("problem", "language"), OTHERS)
def test_a_skeleton_is_found_right(
    kw_here: Command, court: Court, problem: str, language: str
) -> None:
    printed = kw_here("problems", problem, "--signature", language)
    assert (printed.code, printed.err) == (0, "")
    if TARGETS[language] == "cpu":
        expected = (Status.SUSPECT,)
        judge = partial(court.judge, printed.out, problem, language=language, expected=expected)
        try:
            verdict = judge()
        except PrerequisiteError:  # torch, which rounds to a half after each step
            verdict = judge(baseline=COMPILED)
    else:
        verdict = court.look(printed.out, problem, language, Depth.SCREEN)
    # SUSPECT: every answer was right, and a busy machine's clocks could not be believed.
    clocks = {Status.SUSPECT} if TARGETS[language] == "cpu" else set()
    assert verdict.status in {Status.SCREENED, *clocks}, (verdict.reasons, verdict.log)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_skeleton_says_what_it_is_and_how_to_judge_it(language: str) -> None:
    for problem in problems():
        text = skeleton(problem, LANGUAGES[language])
        command = f"kernelwright eval {problem.name} {problem.name}{LANGUAGES[language].suffix}"
        assert f"{command} --target {TARGETS[language]}" in text
        assert problem.title in text
        # What is passed to a kernel of many tensors is one line of its plan.
        lines = [line for line in text.splitlines() if not line.startswith("args = [")]
        assert max(map(len, lines)) <= 100
        assert text.endswith("\n")
        assert not text.endswith("\n\n")
