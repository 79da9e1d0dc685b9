"""Every CUDA and Triton recipe, built for several architectures and emulated, as a user would.

    python benchmarks/recipe_builds.py [--targets sm_80,sm_90,sm_100] [--jobs 2]
        [--record FILE] [--out docs/results/recipe-builds.md] [PROBLEM …]

Each recipe is evaluated at its first knobs on its problem's tiny workload, for each target, in a
process of its own: `kernelwright eval … --target sm_80`. Where no GPU is, it is built by the
architecture's compiler and its function is checked by an emulation. Verdicts are kept in the
record as they come, and what stands there is not asked for again.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from machine import machine

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.languages import LANGUAGES
from kernelwright.kernelbench.recipe import Recipe
from kernelwright.kernelbench.recipes import recipes_for

ON_GPU = [name for name, each in LANGUAGES.items() if each.is_for_gpu]
TARGETS = "sm_80,sm_90,sm_100"


class Told(NamedTuple):
    """The verdict on one recipe for one target."""

    problem: str
    language: str
    family: str
    target: str
    status: str
    reason: str
    seconds: float

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What was asked."""
        return self.problem, self.language, self.family, self.target


def list_recipes(problems: Sequence[str]) -> Iterator[Recipe]:
    """Those of languages that run on a GPU."""
    for problem in problems:
        for language in ON_GPU:
            yield from recipes_for(problem, language)


def evaluate(recipe: Recipe, target: str, folder: Path) -> Told:
    """The verdict of one evaluation."""
    language = LANGUAGES[recipe.language]
    with tempfile.TemporaryDirectory(dir=folder) as own:
        file = Path(own) / f"candidate{language.suffix}"
        file.write_text(recipe.render(recipe.first_knobs()))
        command = [sys.executable, "-m", "kernelwright", "eval", recipe.problem, str(file)]
        options = ["--target", target, "--workload", "tiny", "--language", recipe.language]
        more = ["--home", own, "--cache-dir", str(folder / "cache"), "--no-save", "--json"]
        done = subprocess.run(
            [*command, *options, *more], capture_output=True, text=True, check=False
        )
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except json.JSONDecodeError:
        found = {"status": "no verdict", "reasons": [done.stderr.strip()[-300:]]}
    reason = " ".join(found.get("reasons", ())[:1]).partition("\n")[0]
    seconds = sum(found.get("seconds", {}).values())
    named = (recipe.problem, recipe.language, recipe.family, target)
    return Told(*named, found["status"], reason, round(seconds, 2))


def read(record: Path) -> dict[tuple[str, str, str, str], Told]:
    """What was found before."""
    lines = record.read_text().splitlines() if record.exists() else []
    return {told.key: told for told in (Told(**json.loads(line)) for line in lines)}


def run(recipes: Sequence[Recipe], targets: Sequence[str], record: Path, jobs: int) -> list[Told]:
    """Asks for what the record does not have."""
    known = read(record)
    wanted = [(recipe, target) for recipe in recipes for target in targets]
    keys = [(r.problem, r.language, r.family, target) for r, target in wanted]
    left = [ask for ask, key in zip(wanted, keys, strict=True) if key not in known]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        asked = [pool.submit(evaluate, *ask, Path(folder)) for ask in left]
        for number, each in enumerate(asked, start=1):
            told = each.result()
            known[told.key] = told
            with record.open("a") as lines:
                lines.write(json.dumps(told._asdict()) + "\n")
            words = f"{told.problem} {told.language} {told.family} {told.target}: {told.status}"
            print(f"{number}/{len(left)} {words} {told.reason}", flush=True)
    return [known[key] for key in keys]


def page(found: Sequence[Told], targets: Sequence[str]) -> str:
    """As Markdown."""
    passed = sum(each.status in ("SCREENED", "VERIFIED") for each in found)
    rows: dict[tuple[str, str, str], dict[str, Told]] = {}
    for each in found:
        rows.setdefault(each.key[:3], {})[each.target] = each
    lines = [
        "# Recipes for GPUs, built and emulated",
        "",
        f"{datetime.date.today()}, {machine()}. `make recipe-builds`. No GPU: each recipe is built "
        "for the architecture, and its function is checked by an emulation on the tiny workload "
        "and on hidden sizes; nothing ran on a device or was timed.",
        "",
        f"{passed} of {len(found)} evaluations of {len(rows)} recipes passed.",
        "",
        f"| problem | recipe | {' | '.join(targets)} |",
        f"|---|---|{'---|' * len(targets)}",
    ]
    for (problem, language, family), by_target in rows.items():
        cells = " | ".join(by_target[target].status for target in targets)
        lines.append(f"| `{problem}` | {language} {family} | {cells} |")
    failed = [each for each in found if each.reason]
    if failed:
        lines += ["", "## What did not pass, and why", ""]
        lines += [
            f"- `{each.problem}`, {each.language} {each.family}, {each.target}: {each.status}: "
            f"{each.reason}"
            for each in failed
        ]
    return "\n".join([*lines, ""])


def main() -> None:
    """Writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*", default=registry.names())
    parser.add_argument("--targets", default=TARGETS)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--record", type=Path, default=Path("recipe-builds.jsonl"))
    parser.add_argument("--out", type=Path, default=Path("docs/results/recipe-builds.md"))
    given = parser.parse_args()
    targets = given.targets.split(",")
    found = run(list(list_recipes(given.problems)), targets, given.record, given.jobs)
    given.out.write_text(page(found, targets))


if __name__ == "__main__":
    main()
