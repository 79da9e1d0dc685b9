"""The acceptance numbers, and the tests that carry them, as a table of docs/workflows.md.

    python tests/house/acceptance.py        writes the table into docs/workflows.md

A test carries a number in its name (`test_b7_…`). Those that are older than the numbers, or whose
file has numbers of its own, stand in MAPPED.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent.parent
PAGE = TESTS.parent / "docs" / "workflows.md"
BEGIN, END = "<!-- acceptance: begin -->", "<!-- acceptance: end -->"
SHOWN = 3
"""Tests of a number that the table names; a reader needs a way in, no list."""

WHAT = {
    "A1": "what is diagnosed, profiled and edited is one candidate",
    "A2": "a malformed reply of the Judge ends nothing",
    "A3": "fields longer than asked for are cut, and it is said",
    "A4": "advice that cites metrics nobody measured is not used",
    "A5": "code is found in replies of every shape, or why not",
    "A6": "two candidates of one instant are two",
    "A7": "every prompt is rendered strictly",
    "A8": "a model that passes its own test gets no credit",
    "A9": "a copied or wrapped reference never wins",
    "A10": "a model that never compiles stops at the bound",
    "A11": "instructions in data stay data",
    "A12": "who repairs sees reference, precision and failing input",
    "A13": "the card is the device's own, or says that it is partial",
    "S1": "every island gets its share of births",
    "S2": "islands have elites of their own",
    "S3": "migration does not make islands equal",
    "S4": "a gain is a gain over the seed",
    "S5": "draws differ, and are the same for the same seed",
    "S6": "archive and bandit survive a death anywhere",
    "S7": "parents are of the generation's beginning",
    "S8": "a copy of the champion is never promoted",
    "S9": "what is faster than physics wins nothing",
    "S10": "a soft verifier cannot starve the search",
    "S11": "compared workflows spend the same",
    "S12": "edits leave front matter and fixed regions alone",
    "E1": "candidates that spin, sleep or detach end in time, and nothing is left of them",
    "E2": "a crash takes nothing from the next candidate",
    "E3": "a flood of output is bounded",
    "E4": "a killed worker costs one evaluation, not the campaign",
    "E5": "one timing slot; builds are bounded",
    "E6": "API keys reach no candidate and stand in nothing that is written",
    "E7": "without a profiler the campaign goes on, and prompts say what is missing",
    "B1": "caps hold with calls in flight",
    "B2": "an unknown price is refused, not counted as nought",
    "B3": "missing or impossible usage is estimated and marked",
    "B4": "an attempt is one request and one event",
    "B5": "an endpoint that is down loses nothing",
    "B6": "a truncated reply is paid and never built",
    "B7": "a death anywhere pays nothing twice",
    "B8": "the events are enough to resume",
    "B9": "another version is refused, never mixed",
    "B10": "a fault in one slot costs the others nothing",
    "B11": "one process at a time runs a campaign",
    "B12": "resuming a finished campaign doubles nothing",
    "B13": "the state of a graph is plain data",
    "B14": "nothing is sent but to the endpoint",
    "B15": "any endpoint, any name; what it refuses is learned",
    "B16": "structured output falls back step by step",
    "B17": "a full disk is told, and leaves no half event",
}

MAPPED = {
    "S9": ["verifier/test_roofline.py::test_a_time_below_half_of_the_floor_is_not_plausible"],
    "E1": [
        "sandbox/isolation/test_jobs.py::test_the_wall_clock_ends_a_sleeper_and_its_daemon",
        "sandbox/isolation/test_jobs.py::test_cpu_time_of_the_tree_is_limited",
        "hostile/test_hostile.py::test_a_hostile_candidate_gets_its_status",
    ],
    "E2": [
        "hostile/test_hostile.py::test_after_them_an_honest_candidate_is_judged_as_ever",
        "hostile/test_hostile.py::test_nothing_is_left_for_the_next_candidate",
    ],
    "E3": ["sandbox/isolation/test_jobs.py::test_a_flood_is_cut_and_ended"],
    "E6": [
        "verifier/test_secrets.py::test_a_kernel_that_looks_for_keys_finds_none",
        "verifier/test_secrets.py::test_nothing_below_the_campaign_is_given_the_keys",
    ],
    "E7": [
        "verifier/profile/test_nsight.py::test_a_profiler_that_hangs_is_ended",
        "verifier/profile/test_nsight.py::test_there_may_be_no_profiler",
    ],
}

_NUMBERED = re.compile(r"test_((?:[abes]\d+_)+)")


@cache
def tests() -> tuple[tuple[str, str], ...]:
    """Every test function: its file below tests/, and its name."""
    return tuple(_tests())


def _tests() -> Iterator[tuple[str, str]]:
    for file in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield file.relative_to(TESTS).as_posix(), node.name


def carried() -> dict[str, list[str]]:
    """The tests of each number, `FILE::NAME`, those of MAPPED first."""
    found = {number: list(MAPPED.get(number, ())) for number in WHAT}
    for file, name in tests():
        if numbered := _NUMBERED.match(name):
            for number in numbered[1].upper().strip("_").split("_"):
                found.setdefault(number, []).append(f"{file}::{name}")
    return found


def rows() -> Iterator[str]:
    """The lines of the table."""
    yield "| Number | What holds | Tests |"
    yield "|---|---|---|"
    found = carried()
    for number, what in WHAT.items():
        named = found[number]
        shown = [f"`{test}`" for test in _spread(named)]
        more = f" and {len(named) - len(shown)} more" if len(named) > len(shown) else ""
        yield f"| {number} | {what} | {'<br>'.join(shown) or '–'}{more} |"


def _spread(named: list[str]) -> list[str]:
    """At most SHOWN, of different files first."""
    first = {test.partition("::")[0]: test for test in reversed(named)}
    leading = sorted(first.values(), key=named.index)
    return [*leading, *(test for test in named if test not in leading)][:SHOWN]


def parts(page: str) -> tuple[str, str, str]:
    """What stands before, in and after the table's place."""
    before, _, rest = page.partition(BEGIN)
    table, _, after = rest.partition(END)
    return before + BEGIN, table.strip("\n"), END + after


def main() -> None:
    """Writes the table."""
    before, _, after = parts(PAGE.read_text("utf-8"))
    PAGE.write_text(f"{before}\n" + "\n".join(rows()) + f"\n{after}", "utf-8")


if __name__ == "__main__":
    main()
