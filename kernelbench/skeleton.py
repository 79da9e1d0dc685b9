# SPDX-License-Identifier: Apache-2.0
"""Entry points, and whole candidates to start from: one that is right for problem and language.

What computes an answer stands in `skeletons/`, a TOML file for each problem; this module puts the
entry point, the launch plan and a few words around it, by one writer for each language. It knows no
compiler.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from textwrap import fill, indent
from typing import Any, NamedTuple, Protocol

from .dtypes import FLOAT32, DType, dtype_of, in_c, in_cuda
from .languages import CPP, CUDA, PYTHON, TRITON, Language
from .problem import Problem, c_parameters

FOLDER = Path(__file__).parent / "skeletons"

_HEADERS = {"float16": "cuda_fp16.h", "bfloat16": "cuda_bf16.h"}
"""Of CUDA's types that are no part of the language."""
_WIDTH = 88
"""Of a line of the definition."""
_CODE_WIDTH = 100
Constants = tuple[str, ...]
"""Names of a Triton kernel's tl.constexpr parameters."""
_INNER, _OUTER = 32, 8
"""Threads of a block along the second and the first index; a first alone takes all of them."""


class Written(NamedTuple):
    """A candidate behind the words at its head."""

    plan: str
    """Empty where the language has none."""
    code: str


class Writer(Protocol):
    """What candidates of one language begin with."""

    advice: str
    """What to change, at a candidate's head."""

    def signature(self, problem: Problem, constants: Constants) -> str:
        """The entry point, without a body."""

    def write(self, problem: Problem, parts: dict[str, Any]) -> Written:
        """A whole candidate, of what computes its answer."""


def _wrap_parameters(head: str, parameters: list[str], tail: str) -> str:
    """One line if it fits, else parameters filled below the opening bracket."""
    line = f"{head}({', '.join(parameters)}){tail}"
    if len(line) <= _CODE_WIDTH:
        return line
    lines, current = [], "   "
    for number, parameter in enumerate(parameters):
        piece = f" {parameter}" + ("," if number < len(parameters) - 1 else "")
        if len(current) + len(piece) > _CODE_WIDTH - len(") {") and current.strip():
            lines.append(current)
            current = "   "
        current += piece
    return "\n".join((f"{head}(", *lines, current)) + f"){tail}"


def _in_types(
    code: str, problem: Problem, word: Callable[[DType], str], *, is_cast: bool = False
) -> str:
    """What computes an answer, written for float32, with the types that the problem's tensors have.

    Args:
        word: what the language calls a type.
        is_cast: whether elements of inputs have to be told to become floats: CUDA's __half becomes
            any number there is.
    """
    for tensor in problem.tensors:
        dtype = dtype_of(tensor.dtype)
        if tensor.is_index or dtype is FLOAT32:
            continue
        pointer = re.compile(rf"\bfloat\* (\w+) = {tensor.name}\b")
        names = [tensor.name, *pointer.findall(code)]
        code = pointer.sub(rf"{word(dtype)}* \1 = {tensor.name}", code)
        if tensor in problem.outputs:
            if dtype.is_integral:
                stored = re.compile(rf"(\b{tensor.name}\[[^\n]*\] = )\(float\)")
                code = stored.sub(rf"\1({word(dtype)})", code)
        elif is_cast and dtype.is_float:
            code = re.sub(rf"\b({'|'.join(names)})\[", r"(float)\1[", code)
    return code


class _Cpp:
    advice = """\
Keep the entry point; change what is inside: how the loops are ordered, cut into tiles and dealt
to threads, and in which precision sums are kept."""

    def signature(self, problem: Problem, constants: Constants) -> str:
        del constants
        return _wrap_parameters(f'extern "C" void {problem.name}', c_parameters(problem), ";")

    def write(self, problem: Problem, parts: dict[str, Any]) -> Written:
        lines = ["// Threads share this loop.", "#pragma omp parallel for schedule(dynamic, 16)"]
        depth = 0
        for name, extent in parts["each"]:
            lines.append("    " * depth + f"for (int {name} = 0; {name} < {extent}; ++{name}) {{")
            depth += 1
        computed = _in_types(parts["c"], problem, in_c)
        body = "\n".join(lines) + "\n" + indent(computed, "    " * depth)
        for left in reversed(range(depth)):
            body += "    " * left + "}\n"
        code = _enclose(self.signature(problem, ()), body)
        return Written("", f"#include <math.h>\n#include <stddef.h>\n\n{code}")


class _Cuda:
    advice = """\
The plan above says how the kernel is launched: change grid, block and args there, and give each
[[launch]] that you add a kernel of its own. `args` stand in the order of its parameters."""

    def signature(self, problem: Problem, constants: Constants) -> str:
        del constants
        head = f'extern "C" __global__ void {problem.name}_kernel'
        return _wrap_parameters(head, c_parameters(problem, in_cuda), ";")

    def write(self, problem: Problem, parts: dict[str, Any]) -> Written:
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
        told = f"// One thread computes one ({names})."
        body = "\n".join([told, *at, f"if ({outside}) return;", ""])
        headers = {_HEADERS[t.dtype] for t in problem.tensors if t.dtype in _HEADERS}
        included = "".join(f"#include <{name}>\n" for name in sorted(headers))
        computed = _in_types(parts["c"], problem, in_cuda, is_cast=True)
        code = _enclose(self.signature(problem, ()), body + computed)
        return Written(plan, "\n" + included + "\n" * bool(included) + code)


class _Triton:
    advice = """\
The plan above says how the kernel is launched: `args` stand in the order of the kernel's
parameters, `constexpr` has a value for each tl.constexpr. Change tiles and grid together."""

    def signature(self, problem: Problem, constants: Constants) -> str:
        tensors = [f"{tensor.name}_ptr" for tensor in problem.tensors]
        parameters = [*problem.axes, *tensors, *(f"{name}: tl.constexpr" for name in constants)]
        return "@triton.jit\n" + _wrap_parameters(f"def {problem.name}_kernel", parameters, ":")

    def write(self, problem: Problem, parts: dict[str, Any]) -> Written:
        triton = parts["triton"]
        constants = triton["constexpr"]
        fixed = ", ".join(f"{name} = {_value(value)}" for name, value in constants.items())
        more = [f"constexpr = {{ {fixed} }}"]
        more += [f"num_warps = {triton['num_warps']}"] if "num_warps" in triton else []
        plan = _plan(TRITON, problem, triton["grid"], more)
        head = self.signature(problem, tuple(constants))
        imports = "\nimport triton\nimport triton.language as tl\n\n\n"
        return Written(plan, f"{imports}{head}\n{indent(triton['body'], '    ')}")


def _list_parameters(problem: Problem) -> list[str]:
    """What `run` of a Python candidate may take, by name."""
    return [*problem.axes, *(tensor.name for tensor in problem.tensors)]


class _Python:
    advice = """\
`run` gets axes, inputs and outputs by name and writes the outputs; leave out parameters that you
do not need. A `class ModelNew(torch.nn.Module)` with a `forward` may stand in its place."""

    def signature(self, problem: Problem, constants: Constants) -> str:
        del constants
        inputs = [tensor.name for tensor in problem.inputs]
        outputs = [tensor.name for tensor in problem.outputs]
        taken = _wrap_parameters("def run", _list_parameters(problem), " -> None:")
        forward = _wrap_parameters("    def forward", ["self", *inputs], ":")
        returned = ", ".join(outputs)
        told = (
            f"{problem.name}, either way. torch tensors over shared memory: inputs are read-only, "
            f"{returned} may be written. Parameters come by name: a function leaves out those that "
            "it has no use for."
        )
        note = fill(told, _CODE_WIDTH - 1, initial_indent="# ", subsequent_indent="# ")
        return f"""\
{note}
{taken}
    ...  # writes {returned}

# Or as in KernelBench: the runner copies what is returned. `__init__` may take axes.
class ModelNew(torch.nn.Module):
{forward}
        ...
        return {returned}"""

    def write(self, problem: Problem, parts: dict[str, Any]) -> Written:
        head = _wrap_parameters("def run", _list_parameters(problem), " -> None:")
        return Written("", f"\nimport torch\n\n\n{head}\n{indent(parts['python'], '    ')}")


WRITERS: dict[Language, Writer] = {CPP: _Cpp(), CUDA: _Cuda(), TRITON: _Triton(), PYTHON: _Python()}


def signature(
    problem: Problem, language: Language = CPP, *, constants: Constants = ("BLOCK",)
) -> str:
    """The entry point of a candidate for `problem`, without a body; `skeleton` gives one.

    In a language with launch plans it is what a plan may pass to a kernel; a kernel is free to take
    fewer arguments, and a plan to launch several kernels.
    """
    return WRITERS[language].signature(problem, constants)


def skeleton(problem: Problem, language: Language = CPP, *, word: str = "") -> str:
    """A complete candidate for `problem`: right, slow, with comments on what to change.

    Of a user's problem that declares none it is the frame, with a word where the answer belongs.

    Args:
        word: what commands call the problem, where that is not its name.
    """
    if problem.text:
        parts = {**_blank(problem), **problem.skeleton}
    else:
        file = FOLDER / f"{problem.base or problem.name}.toml"
        parts = tomllib.loads(file.read_text(encoding="utf-8"))
    plan, code = WRITERS[language].write(problem, parts)
    return language.syntax.head(plan, _describe_file(problem, language, word)) + code


def _blank(problem: Problem) -> dict[str, Any]:
    """The parts of a candidate that computes nothing yet."""
    written = ", ".join(tensor.name for tensor in problem.outputs)
    told = f"To be written: {written} for this i, as the definition above says."
    rows = (*problem.outputs[0].shape, "1")[0]
    return {
        "each": [["i", rows]],
        "c": f"// {told}\n",
        "python": f"raise NotImplementedError('{written}: to be written')\n",
        "triton": {
            "grid": [rows],
            "constexpr": {"BLOCK": 1024},
            "body": f"i = tl.program_id(0)\n# {told}\n",
        },
    }


def _describe_file(problem: Problem, language: Language, word: str) -> list[str]:
    """What the file says of itself."""
    file = problem.name + language.suffix
    is_whole = not problem.text or bool(problem.skeleton)
    told = [
        f"{problem.title}.",
        *(
            indent(fill(line, _WIDTH, subsequent_indent="    "), "    ")
            for line in problem.definition.splitlines()
        ),
        "",
        "A candidate to start from: it is right, and slow."
        if is_whole
        else "The frame of a candidate: what it computes is still to be written.",
        f"    kernelwright eval {word or problem.name} {file} --target {language.example_target}",
        WRITERS[language].advice,
    ]
    return "\n".join(told).splitlines()


def _enclose(signature: str, body: str) -> str:
    return f"{signature.removesuffix(';')} {{\n{indent(body, '    ')}}}\n"


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
