"""What a candidate's processes write is kept with its verdict, of one that passes too."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from kernelwright.cli.summary import print_verdict
from kernelwright.tests.verifier.sources import CPP, PYTHON
from kernelwright.tests.verifier.stands import opened, task
from kernelwright.tests.verifier.steps import Row
from kernelwright.traces.records import Depth, Status, Verdict
from kernelwright.verifier.stands.stand import Stand
from kernelwright.verifier.stands.verdict_draft import LOG_CHARACTERS

pytestmark = [pytest.mark.jail, pytest.mark.slow]

TALKS = "#include <cstdio>\n#include <unistd.h>\n" + CPP % (
    'static bool has_spoken; if (!has_spoken) std::fputs("rows \\033[2J in parallel\\n", stderr);'
    "has_spoken = true;  /* deed */"
)


@pytest.fixture(scope="module")
def on_cpu(shared_cache: Path) -> Iterator[Stand]:
    stand = opened(task(shared_cache))
    yield stand
    stand.close()


def shown(verdict: Verdict) -> str:
    told = io.StringIO()
    print_verdict(Console(file=told, width=200), verdict)
    return told.getvalue()


def test_the_words_of_one_that_passes_are_kept_once_and_shown(on_cpu: Stand) -> None:
    verdict = Row(TALKS, Status.VERIFIED, "", protocol=Depth.FULL).judged(on_cpu)
    assert verdict.status is Status.VERIFIED, verdict.reasons
    # Of the process that was timed three times over, and of the one with sanitizers.
    assert verdict.log.count("rows ?[2J in parallel\n") == 1
    assert "rows ?[2J in parallel" in shown(verdict)
    assert '"log":"rows ?[2J in parallel' in verdict.model_dump_json()


def test_the_words_of_one_that_is_wrong_are_kept(on_cpu: Stand) -> None:
    verdict = Row(TALKS.replace("/* deed */", "y[0] += 1;"), Status.INCORRECT, "").judged(on_cpu)
    assert verdict.status is Status.INCORRECT
    assert "rows ?[2J in parallel\n" in verdict.log


def test_the_words_of_one_in_python_are_kept_up_to_a_limit(on_cpu: Stand) -> None:
    source = PYTHON + '    import sys\n    print("a line of some length " * 9, file=sys.stderr)\n'
    verdict = Row(source, Status.SCREENED, "", language="python").judged(on_cpu)
    assert verdict.status is Status.SCREENED, verdict.reasons
    assert verdict.log.startswith("a line of some length a line")
    assert 9 * 22 * 10 < len(verdict.log) <= LOG_CHARACTERS
