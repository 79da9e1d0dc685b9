"""docs/problems: a page for each problem, an index, and which paper's operator is where.

    python benchmarks/problem_pages.py [-o docs/problems] [--suite docs/results/suite-cpu.csv]

What stands there follows from the problems, their recipes and the table of a suite; nothing runs.
"""

from __future__ import annotations

import argparse
import csv
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kernelwright.agents.prompting.techniques import list_applicable
from kernelwright.cli.problems import combinations
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.languages import CPP, CUDA, TRITON
from kernelwright.kernelbench.policies import name_in
from kernelwright.kernelbench.problem import Problem, Workload, c_parameters
from kernelwright.kernelbench.recipe import Recipe
from kernelwright.kernelbench.recipes import recipes_for
from kernelwright.kernelbench.shapes import lint_shapes

HERE = Path(__file__).parent
ROOT = HERE.parent
RECIPES = {CPP.name: "C++", CUDA.name: "CUDA", TRITON.name: "Triton"}
LINTED = "sm_90"
Results = Mapping[str, Mapping[str, str]]
"""Of a suite's table: the row of each problem."""


def write_pages(folder: Path, suite: Path | None) -> list[Path]:
    """Writes all pages, and returns them; pages of problems that are gone are deleted."""
    results = _read_suite(suite) if suite and suite.exists() else {}
    problems = registry.problems()
    pages = {f"{problem.name}.md": _page(problem, results) for problem in problems}
    pages["README.md"] = _index(problems, results)
    pages["papers.md"] = _papers(results)
    folder.mkdir(parents=True, exist_ok=True)
    for stale in set(folder.glob("*.md")) - {folder / name for name in pages}:
        stale.unlink()
    for name, text in pages.items():
        (folder / name).write_text(text, encoding="utf-8")
    return sorted(folder / name for name in pages)


def _read_suite(path: Path) -> Results:
    with path.open(encoding="utf-8") as file:
        return {row["problem"]: row for row in csv.DictReader(file)}


def _page(problem: Problem, results: Results) -> str:
    head = [f"# {problem.name}", "", f"{problem.title}.", "", *_indented(problem.definition), ""]
    told = [
        f"Source: {problem.source}.",
        f"Reported there: {problem.headline}" if problem.headline else "",
        f"Backward of [{problem.backward_of}]({problem.backward_of}.md)."
        if problem.backward_of
        else "",
        f"Tags: {', '.join(problem.tags)}. Precision: {problem.precision.policy}."
        + (f" Also with `--policy {'|'.join(problem.policies)}`." if problem.policies else ""),
    ]
    parts = [
        *head,
        *(line + "\n" for line in told if line),
        *_table(("axis", "what"), problem.axes.items()),
        *_table(
            ("tensor", "type", "what"),
            (
                (
                    f"`{tensor.name}`" + (" (out)" if tensor in problem.outputs else ""),
                    f"`{tensor.dtype}[{', '.join(tensor.shape)}]`",
                    tensor.meaning,
                )
                for tensor in problem.tensors
            ),
        ),
        "The entry point takes, in this order:",
        "",
        *_indented(", ".join(c_parameters(problem))),
        "",
        f"What an answer may be wrong by: {problem.accuracy}\n" if problem.accuracy else "",
        "## Workloads",
        "",
        *_table(
            ("workload", "kind", "sizes", "flops", "bytes", "flops/byte", "note"),
            (_cost(problem, workload) for workload in problem.workloads),
        ),
        *_sizes(problem),
        "## Kernels",
        "",
        f"Held against: {', '.join(b.name for b in problem.baselines)}.\n",
        *_table(
            ("recipe", "language", "variants", "what"),
            (
                (word, RECIPES[language], f"{combinations(recipe.knobs):,}", recipe.summary)
                for language in RECIPES
                for word, recipe in _recipes(problem, language)
            ),
        ),
        *_result(problem, results),
        "Techniques that a Coder is offered: "
        + ", ".join(f"`{name}`" for name in _techniques(problem))
        + ".",
        "",
    ]
    return "\n".join(parts)


def _indented(text: str) -> list[str]:
    return [f"    {line}" for line in text.splitlines()]


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    columns = list(heads)
    lines = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows]
    if not lines:
        return []
    ends = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    return [*ends, *(f"| {line} |" for line in lines), ""]


def _cost(problem: Problem, workload: Workload) -> tuple[str, ...]:
    axes = problem.structure(workload).axes
    flops, moved = problem.flops(axes), problem.bytes_moved(axes)
    sizes = " ".join(f"{axis}={size}" for axis, size in axes.items())
    return (
        workload.name,
        workload.kind,
        sizes,
        f"{flops:.3g}",
        f"{moved:.3g}",
        f"{flops / moved:.3g}",
        workload.note,
    )


def _recipes(problem: Problem, language: str) -> list[tuple[str, Recipe]]:
    """Its recipes by what they are called, then those that it has in a precision policy alone."""
    own = recipes_for(problem.name, language)
    others: dict[str, tuple[list[str], Recipe]] = {}
    for policy in problem.policies:
        for recipe in recipes_for(name_in(problem.name, policy), language):
            if recipe.family not in [each.family for each in own]:
                others.setdefault(recipe.family, ([], recipe))[0].append(f"`{policy}`")
    return [
        *((recipe.family, recipe) for recipe in own),
        *((f"{recipe.family} ({', '.join(named)})", recipe) for named, recipe in others.values()),
    ]


def _sizes(problem: Problem) -> list[str]:
    """What realistic sizes waste on one GPU."""
    lines = [
        f"- {workload.name}: {note.text}"
        for workload in problem.workloads
        if workload.kind == "realistic" and workload.axes.keys() == problem.axes.keys()
        for note in lint_shapes(problem, workload.axes, LINTED)
    ]
    return [f"What these sizes waste on `{LINTED}` by themselves:", "", *lines, ""] if lines else []


def _result(problem: Problem, results: Results) -> list[str]:
    row = results.get(problem.name)
    if row is None:
        return []
    return [f"In the last suite on `cpu`, on {row['workload']}: {_tell(row)}.\n"]


def _tell(row: Mapping[str, str]) -> str:
    """One row of a suite in words."""
    if not row["speed-up"]:
        return row["status"]
    gain, low, high = (float(row[key]) for key in ("speed-up", "low", "high"))
    return (
        f"{row['status']}, {gain:.2f} times as fast as {row['best baseline']} "
        f"({low:.2f} to {high:.2f})"
    )


def _techniques(problem: Problem) -> list[str]:
    found: dict[str, None] = {}
    for language, target in ((CPP.name, "cpu"), (CUDA.name, LINTED)):
        found |= {each.name: None for each in list_applicable(problem, language, target)}
    return list(found)


def _index(problems: Iterable[Problem], results: Results) -> str:
    rows = []
    for problem in problems:
        has = [
            f"{word}: {', '.join(recipe.family for recipe in recipes)}"
            for language, word in RECIPES.items()
            if (recipes := recipes_for(problem.name, language))
        ]
        row = results.get(problem.name)
        rows.append(
            (
                f"[{problem.name}]({problem.name}.md)",
                problem.title,
                ", ".join(problem.tags),
                "; ".join(has),
                _tell(row) if row else "",
            )
        )
    about = (
        f"{len(rows)} operators. `make problem-pages` writes these pages from the code; "
        "[papers.md](papers.md) says which paper's operator is where."
    )
    if results:
        about += " Results are those of the last [suite on `cpu`](../results/suite-cpu.md)."
    return "\n".join(
        [
            "# Problems",
            "",
            about,
            "",
            *_table(("problem", "what", "tags", "recipes", "on `cpu`"), rows),
        ]
    )


def _papers(results: Results) -> str:
    papers: list[dict[str, Any]] = tomllib.loads((HERE / "papers.toml").read_text("utf-8"))["paper"]
    rows = []
    for paper in papers:
        known = [name for name in paper["problems"] if name in registry.names()]
        missing = [name for name in paper["problems"] if name not in registry.names()]
        reason = paper.get("reason", "")
        if missing:
            reason = "; ".join(filter(None, (reason, f"not there yet: {', '.join(missing)}")))
        recipes = sorted(
            {
                RECIPES[language]
                for name in known
                for language in RECIPES
                if recipes_for(name, language)
            }
        )
        told = [f"{name}: {_tell(results[name])}" for name in known if name in results]
        rows.append(
            (
                paper["name"],
                paper["source"],
                paper["what"],
                ", ".join(f"[{name}]({name}.md)" for name in known),
                ", ".join(recipes),
                "<br>".join(told),
                reason,
            )
        )
    heads = ("paper", "source", "what", "problems", "recipes", "result on `cpu`", "what is missing")
    return "\n".join(
        [
            "# Papers and their operators",
            "",
            "Which problem holds what a paper's kernels compute. What the paper reports stands on "
            "the problem's page, as its authors report it.",
            "",
            *_table(heads, rows),
        ]
    )


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-o", "--out", type=Path, default=ROOT / "docs" / "problems")
    suite = ROOT / "docs" / "results" / "suite-cpu.csv"
    parser.add_argument("--suite", type=Path, default=suite)
    given = parser.parse_args()
    print(f"{len(write_pages(given.out, given.suite))} pages in {given.out}")


if __name__ == "__main__":
    main()
