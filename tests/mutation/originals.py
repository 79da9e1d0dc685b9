"""Right kernels that mutants are made of: skeletons, recipes, and the honest kernels."""

from __future__ import annotations

import random
import re
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.languages import CPP, Language, Syntax
from kernelwright.kernelbench.recipes import recipes_for
from kernelwright.kernelbench.skeleton import skeleton
from kernelwright.sandbox.builders.compiler import find_compiler

from .tokens import Code

HONEST = Path(__file__).resolve().parent.parent / "honest"
VARIANTS = 2
"""Of each recipe for CPUs, beside the one with its first knobs; of several threads."""
FACTS = {"cpus": 2.0, "vector_bytes": 32.0}


@dataclass(frozen=True)
class Original:
    """One right kernel."""

    name: str
    problem: str
    language: Language
    source: str

    @property
    def axes(self) -> tuple[str, ...]:
        return tuple(registry.get(self.problem).axes)

    @cached_property
    def code(self) -> Code:
        """Its tokens."""
        return Code(self.source, self.language.syntax is Syntax.PYTHON)

    @cached_property
    def active_lines(self) -> frozenset[int]:
        """What this machine's compiler sees of it: not the code for other vectors."""
        if self.language != CPP:
            return frozenset(range(1, self.source.count("\n") + 2))
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "original.cpp"
            file.write_text(self.source)
            command = [str(find_compiler().path), "-E", "-march=native", "-fopenmp", file.name]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
        return frozenset(_own_lines(done.stdout))


def _own_lines(preprocessed: str) -> Iterator[int]:
    number, is_own = 0, False
    for line in preprocessed.split("\n"):
        if line.startswith("# ") and (mark := re.match(r'# (\d+) "([^"]*)"', line)):
            number, is_own = int(mark[1]), mark[2] == "original.cpp"
            continue
        if is_own and line.strip():
            yield number
        number += 1


def originals(language: Language, seed: int) -> Iterator[Original]:
    """All that there are, the skeletons first."""
    for problem in registry.names():
        yield Original("skeleton", problem, language, skeleton(registry.get(problem), language))
    if language == CPP:
        for row in tomllib.loads((HONEST / "native.toml").read_text("utf-8"))["kernel"]:
            source = (HONEST / row["file"]).read_text("utf-8")
            yield Original(Path(row["file"]).stem, row["problem"], language, source)
    rng = random.Random(seed)
    for problem in registry.names():
        for recipe in recipes_for(problem, language.name):
            yield Original(recipe.family, problem, language, recipe.render(recipe.first_knobs()))
            space = [k for k in recipe.space(FACTS) if k.get("threads") != 1]
            space = space if language == CPP else []
            for knobs in rng.sample(space, min(VARIANTS, len(space))):
                told = " ".join(f"{name}={value}" for name, value in knobs.items())
                yield Original(f"{recipe.family} {told}", problem, language, recipe.render(knobs))
