"""How long `kernelwright eval FILE --target sm_90` takes without a GPU, and where the time goes.

    python benchmarks/emulated.py [--language cuda|triton] [--problem NAME] [--repeat 3]

For each problem and language one kernel, a recipe at its first knobs, is evaluated in a process of
its own, as a user would. Every source is new to the build cache; what is ours and kept there (the
runner, the emulation's precompiled header) is made by one evaluation before, which does not count.
`rest` is what the verdict does not split: starting the command, measuring the sandbox, the gate
for kernels that compute nothing. Exits with 1 where the median of a language is above the limit.
"""

from __future__ import annotations

import argparse
import json
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from machine import machine

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.languages import LANGUAGES
from kernelwright.kernelbench.recipes import recipes_for

TARGET = "sm_90"
LIMIT_S = 4.0
SPANS = ("build", "profile", "start", "verify", "sanitize")
ON_GPU = [name for name, each in LANGUAGES.items() if each.is_for_gpu]


def evaluated(problem: str, language: str, folder: Path) -> tuple[dict[str, Any], float]:
    """The verdict's document, and the seconds that the whole command took."""
    recipe = recipes_for(problem, language)[0]
    file = folder / f"candidate{LANGUAGES[language].suffix}"
    unique = f"\n{LANGUAGES[language].syntax.value} {secrets.token_hex(8)}\n"
    file.write_text(recipe.render(recipe.first_knobs()) + unique)
    command = [
        sys.executable,
        "-m",
        "kernelwright",
        "eval",
        problem,
        str(file),
        "--target",
        TARGET,
        "--language",
        language,
        "--cache-dir",
        str(folder / "cache"),
        "--no-save",
        "--json",
    ]
    start = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    spent = time.monotonic() - start
    if not done.stdout:
        raise SystemExit(f"{problem} in {language} was not judged: {done.stderr.strip()[-400:]}")
    return json.loads(done.stdout), spent


def row(name: str, status: str, parts: dict[str, float], total: float) -> str:
    """One line of the table; `verify` without the start of processes that it holds."""
    cells = [parts.get(span, 0.0) for span in SPANS]
    cells.append(total - sum(cells))
    return f"{name:<18}" + "".join(f"{cell:>9.2f}" for cell in (*cells, total)) + f"  {status}"


def parts_of(seconds: dict[str, float]) -> dict[str, float]:
    """The spans of a verdict, made disjoint: processes are started inside of `verify`."""
    return {**seconds, "verify": seconds.get("verify", 0.0) - seconds.get("start", 0.0)}


def measured(language: str, problems: list[str], repeat: int, folder: Path) -> float:
    """Prints a line for each problem, its median run; gives the median of these."""
    print(f"\n{language}, target {TARGET}, protocol full; seconds, the median of {repeat}")
    print(f"{'problem':<18}" + "".join(f"{name:>9}" for name in (*SPANS, "rest", "total")))
    evaluated(problems[0], language, folder)
    totals = []
    for problem in problems:
        runs = [evaluated(problem, language, folder) for _ in range(repeat)]
        document, total = sorted(runs, key=lambda run: run[1])[repeat // 2]
        totals.append(total)
        status = document["status"]
        why = "" if status == "SCREENED" else f": {' '.join(document['reasons'])[:60]}"
        print(row(problem, status + why, parts_of(document["seconds"]), total), flush=True)
    median = statistics.median(totals)
    print(f"{'median':<18}{'':>54}{median:>9.2f}  at most {LIMIT_S:g} is wanted")
    return median


def main() -> None:
    """Measures the languages that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--language", choices=ON_GPU, action="append")
    parser.add_argument("--problem", action="append")
    parser.add_argument("--repeat", type=int, default=3)
    asked = parser.parse_args()
    print(machine())
    medians = []
    with tempfile.TemporaryDirectory() as folder:
        for language in asked.language or ON_GPU:
            wanted = asked.problem or [problem.name for problem in registry.problems()]
            problems = [name for name in wanted if recipes_for(name, language)]
            medians.append(measured(language, problems, asked.repeat, Path(folder)))
    sys.exit(max(medians) > LIMIT_S)


if __name__ == "__main__":
    main()
