# SPDX-License-Identifier: Apache-2.0
"""Whole candidates to start from: for each problem and language a naive kernel that is right.

What computes an answer stands in `skeletons/`, a TOML file for each problem; this module puts the
entry point, the launch plan and a few words around it. It knows no compiler.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from textwrap import fill, indent
from typing import Any

from .languages import CPP, CUDA, PYTHON, TRITON, Language
from .problem import Problem
from .signature import parameters_of_run, signature, wrap_parameters

FOLDER = Path(__file__).parent / "skeletons"

_WIDTH = 88
"""Of a line of the definition."""
_ADVICE = {
    CPP: """\
Keep the entry point; change what is inside: how the loops are ordered, cut into tiles and dealt
to threads, and in which precision sums are kept.""",
    CUDA: """\
The plan above says how the kernel is launched: change grid, block and args there, and give each
[[launch]] that you add a kernel of its own. `args` stand in the order of its parameters.""",
    TRITON: """\
The plan above says how the kernel is launched: `args` stand in the order of the kernel's
parameters, `constexpr` has a value for each tl.constexpr. Change tiles and grid together.""",
    PYTHON: """\
`run` gets axes, inputs and outputs by name and writes the outputs; leave out parameters that you
do not need. A `class ModelNew(torch.nn.Module)` with a `forward` may stand in its place.""",
}
Written = tuple[str, str]
"""A launch plan, empty where the language has none, and the code behind the file's head."""
_INNER, _OUTER = 32, 8
"""Threads of a block along the second and the first index; a first alone takes all of them."""


def skeleton(problem: Problem, language: Language = CPP) -> str:
    """A complete candidate for `problem`: right, slow, with comments on what to change."""
    parts = tomllib.loads((FOLDER / f"{problem.name}.toml").read_text(encoding="utf-8"))
    plan, code = _WRITTEN[language](problem, parts)
    return language.syntax.head(plan, _describe_file(problem, language)) + code


def _describe_file(problem: Problem, language: Language) -> list[str]:
    """What the file says of itself."""
    file = problem.name + language.suffix
    told = [
        f"{problem.title}.",
        *(
            indent(fill(line, _WIDTH, subsequent_indent="    "), "    ")
            for line in problem.definition.splitlines()
        ),
        "",
        "A candidate to start from: it is right, and slow.",
        f"    kernelwright eval {problem.name} {file} --target {language.example_target}",
        _ADVICE[language],
    ]
    return "\n".join(told).splitlines()


def _entry(problem: Problem, language: Language, body: str) -> str:
    head = signature(problem, language).removesuffix(";")
    return f"{head} {{\n{indent(body, '    ')}}}\n"


def _cpp(problem: Problem, parts: dict[str, Any]) -> Written:
    lines = ["// Threads share this loop.", "#pragma omp parallel for schedule(dynamic, 16)"]
    depth = 0
    for name, extent in parts["each"]:
        lines.append("    " * depth + f"for (int {name} = 0; {name} < {extent}; ++{name}) {{")
        depth += 1
    body = "\n".join(lines) + "\n" + indent(parts["c"], "    " * depth)
    for left in reversed(range(depth)):
        body += "    " * left + "}\n"
    return "", f"#include <math.h>\n#include <stddef.h>\n\n{_entry(problem, CPP, body)}"


def _cuda(problem: Problem, parts: dict[str, Any]) -> Written:
    each = parts["each"]
    outer = _OUTER if len(each) == 2 else _INNER * _OUTER
    sizes = [outer, _INNER]
    grid = [f"cdiv({extent}, {size})" for (_, extent), size in zip(each, sizes, strict=False)]
    block = [_INNER, _OUTER] if len(each) == 2 else [outer]
    plan = _plan(CUDA, problem, grid, [f"block = {block}"])
    threads = ("y", "x") if len(each) == 2 else ("x",)
    at = [
        f"const int {name} = blockIdx.{axis} * {size} + threadIdx.{thread};"
        for (name, _), axis, size, thread in zip(each, "xy", sizes, threads, strict=False)
    ]
    outside = " || ".join(f"{name} >= {extent}" for name, extent in each)
    names = ", ".join(name for name, _ in each)
    body = "\n".join([f"// One thread computes one ({names}).", *at, f"if ({outside}) return;", ""])
    return plan, "\n" + _entry(problem, CUDA, body + parts["c"])


def _triton(problem: Problem, parts: dict[str, Any]) -> Written:
    triton = parts["triton"]
    constants = triton["constexpr"]
    fixed = ", ".join(f"{name} = {_value(value)}" for name, value in constants.items())
    more = [f"constexpr = {{ {fixed} }}"]
    more += [f"num_warps = {triton['num_warps']}"] if "num_warps" in triton else []
    plan = _plan(TRITON, problem, triton["grid"], more)
    head = signature(problem, TRITON, constants=tuple(constants))
    imports = "\nimport triton\nimport triton.language as tl\n\n\n"
    return plan, f"{imports}{head}\n{indent(triton['body'], '    ')}"


def _python(problem: Problem, parts: dict[str, Any]) -> Written:
    head = wrap_parameters("def run", parameters_of_run(problem), " -> None:")
    return "", f"\nimport torch\n\n\n{head}\n{indent(parts['python'], '    ')}"


_WRITTEN: dict[Language, Callable[[Problem, dict[str, Any]], Written]] = {
    CPP: _cpp,
    CUDA: _cuda,
    TRITON: _triton,
    PYTHON: _python,
}


def _plan(language: Language, problem: Problem, grid: list[str], more: list[str]) -> str:
    names = [*problem.axes, *(tensor.name for tensor in problem.tensors)]
    lines = [
        f'language = "{language}"',
        "",
        "[[launch]]",
        f'kernel = "{problem.name}_kernel"',
        f"grid = {_value(grid)}",
        *more,
        f"args = {_value(names)}",
    ]
    return "\n".join(lines) + "\n"


def _value(value: str | int | list[str]) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return f'"{value}"' if isinstance(value, str) else str(value)
