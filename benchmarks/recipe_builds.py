"""Every CUDA and Triton recipe, built for several architectures and emulated, as a user would.

    python benchmarks/recipe_builds.py [--targets sm_80,sm_90,sm_100] [--jobs 2]
        [--screen] [--seconds S] [--record FILE] [--out docs/results/recipe-builds.md] [PROBLEM …]

Each recipe is evaluated at its first knobs on its problem's tiny workload, for each target, in a
process of its own: `kernelwright eval … --target sm_80`. Where no GPU is, it is built by the
architecture's compiler and its function is checked by an emulation. Verdicts are kept in the
record as they come, and what stands there is not asked for again. The first recipe of each problem
comes first, then the second ones; after `--seconds` no further one is begun. With `--screen` it is
no user's evaluation but a screening, in this process: on two hidden sizes, in a tenth of the time.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from machine import machine

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.languages import LANGUAGES
from kernelwright.kernelbench.recipe import Recipe
from kernelwright.kernelbench.recipes import recipes_for
from kernelwright.traces.records import Depth
from kernelwright.verifier.evaluation import evaluate as judge
from kernelwright.verifier.request import Order, Task
from kernelwright.verifier.stands.leased import Machine
from kernelwright.verifier.stands.opening import open_stand

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


def in_turn(recipes: Sequence[Recipe]) -> list[Recipe]:
    """The first of each problem, then the second of each."""
    seen: Counter[str] = Counter()
    places = []
    for recipe in recipes:
        places.append(seen[recipe.problem])
        seen[recipe.problem] += 1
    order = sorted(range(len(recipes)), key=lambda at: places[at])
    return [recipes[at] for at in order]


def name(recipe: Recipe) -> tuple[str, str, str]:
    """What it is called in a record."""
    return recipe.problem, recipe.language, recipe.family


def evaluate(recipe: Recipe, target: str, folder: Path) -> dict[str, Any]:
    """What a user is told."""
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
    return found


def screen(recipe: Recipe, target: str, folder: Path) -> dict[str, Any]:
    """The same of a screening."""
    cache = folder / "cache"
    cache.mkdir(exist_ok=True)
    task = Task(
        problem=recipe.problem,
        workload=registry.workload_for(registry.get(recipe.problem), "tiny"),
        cache_dir=str(cache),
        timing_lock=str(folder),
        target=target,
        languages=(recipe.language,),
    )
    source = recipe.render(recipe.first_knobs())
    order = Order(source=source, language=recipe.language, protocol=Depth.SCREEN)
    with closing(open_stand(task, Machine(allowed=()))) as stand:
        verdict = judge(stand, order)
    return verdict.model_dump(mode="json")


def ask(
    recipe: Recipe, target: str, folder: Path, *, until: float, is_screened: bool
) -> Told | None:
    """The verdict of one evaluation; none after a time of time.monotonic()."""
    if time.monotonic() >= until:
        return None
    began = time.monotonic()
    found = (screen if is_screened else evaluate)(recipe, target, folder)
    reason = " ".join(found["reasons"][:1]).partition("\n")[0]
    return Told(*name(recipe), target, found["status"], reason, round(time.monotonic() - began, 2))


def read(record: Path) -> dict[tuple[str, str, str, str], Told]:
    """What was found before."""
    lines = record.read_text().splitlines() if record.exists() else []
    return {told.key: told for told in (Told(**json.loads(line)) for line in lines)}


def run(recipes: Sequence[Recipe], targets: Sequence[str], given: argparse.Namespace) -> list[Told]:
    """Asks for what the record does not have, and tells what it then has."""
    known, until = read(given.record), time.monotonic() + given.seconds
    wanted = [(recipe, target) for target in targets for recipe in in_turn(recipes)]
    left = [(recipe, target) for recipe, target in wanted if (*name(recipe), target) not in known]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(given.jobs) as pool:
        one = partial(ask, folder=Path(folder), until=until, is_screened=given.screen)
        for number, told in enumerate(pool.map(one, *zip(*left, strict=True)), start=1):
            if not told:
                continue
            known[told.key] = told
            with given.record.open("a") as lines:
                lines.write(json.dumps(told._asdict()) + "\n")
            words = f"{told.problem} {told.language} {told.family} {told.target}: {told.status}"
            print(f"{number}/{len(left)} {words} {told.reason}", flush=True)
    keys = [(*name(recipe), target) for recipe in recipes for target in targets]
    return [known[key] for key in keys if key in known]


def page(found: Sequence[Told], targets: Sequence[str], count: int, is_screened: bool) -> str:
    """As Markdown.

    Args:
        count: of the evaluations that there are to make.
    """
    passed = sum(each.status in ("SCREENED", "VERIFIED") for each in found)
    rows: dict[tuple[str, str, str], dict[str, Told]] = {}
    for each in found:
        rows.setdefault(each.key[:3], {})[each.target] = each
    left = f"; {count - len(found)} more were not made in the time" if count > len(found) else ""
    sizes = (
        "two hidden sizes, without an address sanitizer (`--screen`)"
        if is_screened
        else "hidden sizes"
    )
    lines = [
        "# Recipes for GPUs, built and emulated",
        "",
        f"{datetime.date.today()}, {machine()}. `make recipe-builds`. No GPU: each recipe is built "
        "for the architecture, and its function is checked by an emulation on the tiny workload "
        f"and on {sizes}; nothing ran on a device or was timed.",
        "",
        f"{passed} of {len(found)} evaluations of {len(rows)} recipes passed{left}.",
        "",
        f"| problem | recipe | {' | '.join(targets)} |",
        f"|---|---|{'---|' * len(targets)}",
    ]
    for (problem, language, family), by_target in rows.items():
        cells = " | ".join(by_target[t].status if t in by_target else "" for t in targets)
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
    parser.add_argument("--screen", action="store_true")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--record", type=Path, default=Path("recipe-builds.jsonl"))
    parser.add_argument("--out", type=Path, default=Path("docs/results/recipe-builds.md"))
    given = parser.parse_args()
    targets, recipes = given.targets.split(","), list(list_recipes(given.problems))
    found = run(recipes, targets, given)
    given.out.write_text(page(found, targets, len(recipes) * len(targets), given.screen))


if __name__ == "__main__":
    main()
