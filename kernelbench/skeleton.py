"""Whole candidates to start from: for each problem and language a naive kernel that is right.

What computes an answer stands in `skeletons/`, a TOML file for each problem; this module puts the
entry point, the launch plan and a few words around it. It knows no compiler.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from textwrap import fill, indent
from typing import Any

from .problem import Problem
from .signature import parameters_of_run, signature, wrapped

FOLDER = Path(__file__).parent / "skeletons"

ENDINGS = {"cpp": ".cpp", "cuda": ".cu", "triton": ".py", "python": ".py"}
"""What `eval` tells the language by; a `.py` for a GPU is Triton."""
_WIDTH = 88
"""Of a line of the definition."""
_TARGETS = {"cuda": "sm_90", "triton": "sm_90"}
_ADVICE = {
    "cpp": """\
Keep the entry point; change what is inside: how the loops are ordered, cut into tiles and dealt
to threads, and in which precision sums are kept.""",
    "cuda": """\
The plan above says how the kernel is launched: change grid, block and args there, and give each
[[launch]] that you add a kernel of its own. `args` stand in the order of its parameters.""",
    "triton": """\
The plan above says how the kernel is launched: `args` stand in the order of the kernel's
parameters, `constexpr` has a value for each tl.constexpr. Change tiles and grid together.""",
    "python": """\
`run` gets axes, inputs and outputs by name and writes the outputs; leave out parameters that you
do not need. A `class ModelNew(torch.nn.Module)` with a `forward` may stand in its place.""",
}
_INNER, _OUTER = 32, 8
"""Threads of a block along the second and the first index; a first alone takes all of them."""


def skeleton(problem: Problem, language: str = "cpp") -> str:
    """A complete candidate for `problem`: right, slow, with comments on what to change.

    Raises:
        UnknownNameError: if the language has no signature.
    """
    head = signature(problem, language)
    parts = tomllib.loads((FOLDER / f"{problem.name}.toml").read_text(encoding="utf-8"))
    if language == "cpp":
        return _cpp(problem, head, parts)
    if language == "cuda":
        return _cuda(problem, head, parts)
    return _triton(problem, parts) if language == "triton" else _python(problem, parts)


def _told(problem: Problem, language: str) -> list[str]:
    """What the file says of itself."""
    target = _TARGETS.get(language, "cpu")
    file = problem.name + ENDINGS[language]
    told = [
        f"{problem.title}.",
        *(
            indent(fill(line, _WIDTH, subsequent_indent="    "), "    ")
            for line in problem.definition.splitlines()
        ),
        "",
        "A candidate to start from: it is right, and slow.",
        f"    kernelwright eval {problem.name} {file} --target {target}",
        _ADVICE[language],
    ]
    return "\n".join(told).splitlines()


def _commented(lines: list[str]) -> str:
    return "\n".join(f"// {line}".rstrip() for line in lines) + "\n"


def _cpp(problem: Problem, head: str, parts: dict[str, Any]) -> str:
    told = _told(problem, "cpp")
    lines = ["// Threads share this loop.", "#pragma omp parallel for schedule(dynamic, 16)"]
    depth = 0
    for name, extent in parts["each"]:
        lines.append("    " * depth + f"for (int {name} = 0; {name} < {extent}; ++{name}) {{")
        depth += 1
    body = "\n".join(lines) + "\n" + indent(parts["c"], "    " * depth)
    for left in reversed(range(depth)):
        body += "    " * left + "}\n"
    entry = f"{head.removesuffix(';')} {{\n{indent(body, '    ')}}}\n"
    return f"{_commented(told)}#include <math.h>\n#include <stddef.h>\n\n{entry}"


def _cuda(problem: Problem, head: str, parts: dict[str, Any]) -> str:
    each = parts["each"]
    told = _told(problem, "cuda")
    outer = _OUTER if len(each) == 2 else _INNER * _OUTER
    sizes = [outer, _INNER]
    grid = [f"cdiv({extent}, {size})" for (_, extent), size in zip(each, sizes, strict=False)]
    block = [_INNER, _OUTER] if len(each) == 2 else [outer]
    plan = _plan("cuda", problem, grid, [f"block = {block}"])
    threads = ("y", "x") if len(each) == 2 else ("x",)
    at = [
        f"const int {name} = blockIdx.{axis} * {size} + threadIdx.{thread};"
        for (name, _), axis, size, thread in zip(each, "xy", sizes, threads, strict=False)
    ]
    outside = " || ".join(f"{name} >= {extent}" for name, extent in each)
    names = ", ".join(name for name, _ in each)
    body = "\n".join([f"// One thread computes one ({names}).", *at, f"if ({outside}) return;", ""])
    entry = f"{head.removesuffix(';')} {{\n{indent(body + parts['c'], '    ')}}}\n"
    return f"/*---\n{plan}---*/\n{_commented(told)}\n{entry}"


def _triton(problem: Problem, parts: dict[str, Any]) -> str:
    told = _told(problem, "triton")
    triton = parts["triton"]
    constants = triton["constexpr"]
    fixed = ", ".join(f"{name} = {_value(value)}" for name, value in constants.items())
    more = [f"constexpr = {{ {fixed} }}"]
    more += [f"num_warps = {triton['num_warps']}"] if "num_warps" in triton else []
    plan = _plan("triton", problem, triton["grid"], more)
    head = signature(problem, "triton", constants=tuple(constants))
    text = "\n".join(told)
    return (
        f'"""\n---\n{plan}---\n{text}\n"""\n\nimport triton\nimport triton.language as tl\n\n\n'
        f"{head}\n{indent(triton['body'], '    ')}"
    )


def _python(problem: Problem, parts: dict[str, Any]) -> str:
    told = _told(problem, "python")
    head = wrapped("def run", parameters_of_run(problem), " -> None:")
    text = "\n".join(told)
    return f'"""{text}\n"""\n\nimport torch\n\n\n{head}\n{indent(parts["python"], "    ")}'


def _plan(language: str, problem: Problem, grid: list[str], more: list[str]) -> str:
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
