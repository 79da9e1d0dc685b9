"""Every recipe is compiled and called: its answers, its knobs and its front matter."""

from __future__ import annotations

import ctypes
import importlib.util
import itertools
import random
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from kernelwright.errors import UnknownNameError, UsageError
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.c_types import define_types
from kernelwright.kernelbench.policies import POLICIES, name_in, split_name
from kernelwright.kernelbench.problem import Family
from kernelwright.kernelbench.recipe import Knobs, Recipe
from kernelwright.kernelbench.recipes import get, recipes_for
from kernelwright.kernelbench.recipes.catalogue import RECIPES
from kernelwright.sandbox.builders.compiler import BASE_FLAGS
from kernelwright.sandbox.plan.pattern_plan import PatternPlan, read_pattern_plan
from kernelwright.tests.sampling import at_most, one_in, some_of


def _load_operators() -> ModuleType:
    # Under importlib import mode a test cannot import its neighbour by name.
    path = Path(__file__).with_name("operators.py")
    spec = importlib.util.spec_from_file_location("recipe_operators", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


operators = _load_operators()
PROBLEMS = list(operators.OPERATORS)
ALL = [recipe for recipe in RECIPES if recipe.language == "cpp"]
IN_POLICIES = sorted({recipe.problem for recipe in ALL} - set(PROBLEMS))
FAST = ("gemm_bf16", "gemm_int8", "softmax_f16")
"""One for each way in which elements are loaded and stored; the others are slow."""
FLAGS = [*BASE_FLAGS, "-shared"]
WIDE = {"cpus": 2.0, "vector_bytes": 64.0}
NARROW = {"cpus": 1.0, "vector_bytes": 32.0}

OWN_TYPES = [name for name in IN_POLICIES if not registry.get(name).base]
"""Problems without cases of their own among the operators."""
LEAST_POINTS = 25
"""Of a space: where elements are codes there is little to choose."""

SAMPLED_IN = (
    "gemm_f16",
    "gemm_bf16",
    "gemm_int8",
    "softmax_f16",
    "softmax_backward_bf16",
    "layernorm_f16",
    "rmsnorm_bf16",
    "bias_gelu_f16",
    "spmm_csr_bf16",
    "spmm_csr_tf32",
)
"""Of each template one narrow type: float16 and bfloat16 differ in how they are loaded and stored,
which is the same text in all of them."""
SAMPLED = one_in(4, [recipe for recipe in ALL if recipe.problem in (*PROBLEMS, *SAMPLED_IN)])
PORTABLE = one_in(6, [recipe for recipe in ALL if recipe.problem in (*PROBLEMS, *FAST)])
OTHERS = at_most(6, [problem for problem in OWN_TYPES if problem not in (*FAST, *SAMPLED_IN)])
TRIED_IN = some_of(IN_POLICIES, lambda problem: problem in (*FAST, *SAMPLED_IN, *OTHERS))


def each_of(recipes: list[Recipe]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("recipe", recipes, ids=lambda r: f"{r.problem}-{r.family}")


each_recipe = each_of(ALL)


def sample(recipe: Recipe, count: int) -> list[Knobs]:
    """The default and a seeded choice of legal knobs."""
    space = list(recipe.space(WIDE))
    return [
        recipe.first_knobs(),
        *random.Random(recipe.problem + recipe.family).sample(space, count),
    ]


def compile_all(
    folder: Path, sources: Iterable[tuple[str, str]], *flags: str
) -> dict[str, ctypes.CDLL]:
    """Compiles named sources, two at a time, and loads the libraries."""
    libraries: dict[str, Path] = {}
    for batch in itertools.batched(sources, 2) if sys.version_info >= (3, 12) else _pairs(sources):
        running = []
        for name, source in batch:
            path = folder / f"{name}.cpp"
            path.write_text(define_types(source) + source)
            libraries[name] = path.with_suffix(".so")
            command = ["g++", *FLAGS, *flags, str(path), "-o", str(libraries[name])]
            running.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
        for process in running:
            _, errors = process.communicate(timeout=120)
            assert process.returncode == 0, errors
    return {name: ctypes.CDLL(str(path)) for name, path in libraries.items()}


def _pairs(sources: Iterable[tuple[str, str]]) -> Iterable[tuple[tuple[str, str], ...]]:
    items = list(sources)
    return [tuple(items[i : i + 2]) for i in range(0, len(items), 2)]


def entry_point(problem: str, library: ctypes.CDLL) -> Callable[..., None]:
    """The function to call; of a recipe that makes a plan of the pattern both of its steps."""
    function: Callable[..., None] = getattr(library, problem)
    known, source = registry.get(problem), Path(library._name).with_suffix(".cpp").read_text()
    declared = read_pattern_plan(source, known)
    if declared is None:
        return function
    assert isinstance(declared, PatternPlan), declared
    prepare = getattr(library, f"{problem}_prepare")

    def call(*given: Any) -> None:
        scalars, inputs = given[: len(known.axes)], given[len(known.axes) :]
        size = declared.bytes({a: s.value for a, s in zip(known.axes, scalars, strict=True)})
        assert isinstance(size, int), size
        plan = ctypes.create_string_buffer(b"\xff" * size + b"guarded", size + 7)
        indexed = [one for one, t in zip(inputs, known.inputs, strict=False) if t.is_index]
        prepare(*scalars, *indexed, plan)
        function(*scalars, *inputs, plan)
        assert plan.raw[size:] == b"guarded"

    return call


def verify(problem: str, library: ctypes.CDLL, knobs: Knobs) -> None:
    """Holds one library against every case of its operator."""
    rng = np.random.default_rng(7)
    cases = operators.OPERATORS.get(problem, partial(operators.by_law, problem))
    for case in cases(rng):
        try:
            operators.assert_right(entry_point(problem, library), case)
        except AssertionError as error:
            raise AssertionError(f"{problem} with {knobs}: {error}") from error


def verify_sample(recipe: Recipe, folder: Path, count: int, *flags: str) -> None:
    """Compiles and verifies the default and `count` other combinations."""
    chosen = {f"k{i}": knobs for i, knobs in enumerate(sample(recipe, count))}
    sources = ((name, recipe.render(knobs)) for name, knobs in chosen.items())
    for name, library in compile_all(folder, sources, *flags).items():
        verify(recipe.problem, library, chosen[name])


@pytest.fixture(autouse=True)
def _two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")


@pytest.mark.parametrize(
    "problem",
    [
        *PROBLEMS,
        *(pytest.param(p, marks=() if p in FAST else pytest.mark.slow) for p in TRIED_IN),
    ],
)
def test_default_agrees_with_float64(problem: str, tmp_path: Path) -> None:
    recipes = recipes_for(problem)
    sources = ((recipe.family, recipe.render(recipe.first_knobs())) for recipe in recipes)
    # -O1 keeps the fast suite fast; the slow test builds as the referee does.
    for family, library in compile_all(tmp_path, sources, "-O1").items():
        verify(problem, library, get(problem, family).first_knobs())


@pytest.mark.parametrize("workload", ["hub-max-33", "hub-mean-33"])
def test_a_row_whose_entries_end_with_a_piece_is_written(workload: str, tmp_path: Path) -> None:
    """The next piece has the row's end only: nothing of it to reduce, but the row to write."""
    recipe = get("gspmm_reduce", "nnz-balanced")
    knobs = recipe.first_knobs() | {"threads": 2, "pieces": 16}
    (library,) = compile_all(tmp_path, [("cut", recipe.render(knobs))], "-O1").values()
    problem = registry.get(recipe.problem)
    structure = problem.structure(problem.workload(workload))
    values = problem.values(structure, Family.NORMAL, np.random.default_rng(1))
    truth = problem.oracle(structure, values)["C"]
    bound = operators.bound(truth.value, truth.scale, truth.terms)
    inputs = (*structure.arrays.values(), *values.values())
    scalars = tuple(structure.axes.values())
    operators.assert_right(
        library.gspmm_reduce, operators.Case(workload, scalars, inputs, truth.value, bound)
    )


@pytest.mark.slow
@each_of(SAMPLED)
def test_sampled_knobs_agree_with_float64(recipe: Recipe, tmp_path: Path) -> None:
    verify_sample(recipe, tmp_path, 1, "-O3")


@pytest.mark.slow
@pytest.mark.parametrize("level", ["x86-64", "x86-64-v3"])
@each_of(PORTABLE)
def test_portable_paths_agree_with_float64(recipe: Recipe, level: str, tmp_path: Path) -> None:
    verify_sample(recipe, tmp_path, 0, "-O2", f"-march={level}")


@each_recipe
def test_front_matter_names_the_recipe(recipe: Recipe) -> None:
    for knobs in sample(recipe, 3):
        source = recipe.render(knobs)
        assert source.startswith("/*---\n")
        matter = tomllib.loads(source[len("/*---\n") : source.index("---*/")])
        matter.pop("prepare", None)
        assert matter == {"language": "cpp", "recipe": {"family": recipe.family, "knobs": knobs}}


@each_recipe
def test_space_is_neither_trivial_nor_endless(recipe: Recipe) -> None:
    assert LEAST_POINTS <= recipe.size(WIDE) <= 2500
    assert 0 < recipe.size(NARROW) < recipe.size(WIDE)


@each_recipe
def test_space_keeps_every_constraint(recipe: Recipe) -> None:
    assert all(constraint.reason for constraint in recipe.constraints)
    for facts in (WIDE, NARROW):
        for knobs in recipe.space(facts):
            assert all(constraint.holds(knobs, facts) for constraint in recipe.constraints)


@each_recipe
def test_every_knob_changes_the_source(recipe: Recipe) -> None:
    first = recipe.first_knobs() | (
        {"schedule": "dynamic"} if "schedule" in recipe.first_knobs() else {}
    )
    for knob in recipe.knobs:
        # Everything after the front matter, which names the knobs whatever the template does.
        bodies = {recipe.render({**first, knob.name: v}).split("---*/")[1] for v in knob.values}
        assert len(bodies) == len(knob.values), knob.name


@pytest.mark.parametrize("facts", [WIDE, NARROW, {}], ids=["wide", "narrow", "unknown"])
@each_recipe
def test_default_is_legal_everywhere(recipe: Recipe, facts: dict[str, float]) -> None:
    assert recipe.is_legal(recipe.first_knobs(), facts)


@each_recipe
def test_missing_unknown_and_wrong_knobs_are_errors(recipe: Recipe) -> None:
    knobs = recipe.first_knobs()
    name = recipe.knobs[0].name
    with pytest.raises(UsageError, match=name):
        recipe.render({k: v for k, v in knobs.items() if k != name})
    with pytest.raises(UsageError, match="colour"):
        recipe.render({**knobs, "colour": "red"})
    with pytest.raises(UsageError, match=name):
        recipe.render({**knobs, name: 12345})


def test_each_problem_has_two_families_with_distinct_names() -> None:
    for problem in PROBLEMS:
        families = [recipe.family for recipe in recipes_for(problem)]
        assert len(families) >= (1 if registry.get(problem).backward_of else 2)
        assert len(set(families)) == len(families)


def test_what_can_be_asked_for_in_a_policy_has_recipes_there() -> None:
    rows = (
        *("bias_gelu", "layernorm", "rmsnorm", "softmax", "softmax_backward"),
        *("swiglu", "rope", "hadamard_transform", "w8a8_linear"),
        *("residual_rmsnorm", "rmsnorm_backward", "layernorm_backward"),
        *("cross_entropy_ls", "fused_adam"),
    )
    halves = (*rows, "gemm", "spmm_csr")
    found = {split_name(problem) for problem in IN_POLICIES} - {(name, None) for name in OWN_TYPES}
    others = {name for name, _ in found if registry.get(name).policies} - set(halves)
    assert found == {
        *((name, POLICIES[policy]) for name in (*halves, *others) for policy in ("f16", "bf16")),
        *(("gemm", POLICIES[policy]) for policy in ("tf32", "tf32x3", "int8")),
        ("spmm_csr", POLICIES["tf32"]),
    }


@pytest.mark.parametrize(
    ("problem", "policy"), [("gemm", "tf32"), ("gemm", "tf32x3"), ("spmm_csr", "tf32")]
)
def test_a_policy_of_float32_tensors_has_the_float32_kernels(problem: str, policy: str) -> None:
    for recipe in recipes_for(problem):
        text = recipe.render(recipe.first_knobs())
        other = get(name_in(problem, policy), recipe.family)
        renamed = text.replace(f"void {problem}(", f"void {problem}_{policy}(")
        assert other.render(other.first_knobs()) == renamed != text


def test_unknown_names() -> None:
    assert recipes_for("no_such_problem") == ()
    assert recipes_for("spmm_csr", "fortran") == ()
    with pytest.raises(UnknownNameError) as caught:
        get("spmm_csr", "row-balance")
    assert "row-balanced" in caught.value.hint


def test_importing_recipes_stays_light() -> None:
    code = (
        "import sys, kernelwright.kernelbench.recipes\n"
        "print([m for m in ('jinja2', 'torch', 'scipy') if m in sys.modules])"
    )
    root: Any = Path(__file__).parents[4]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
