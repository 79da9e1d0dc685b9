# SPDX-License-Identifier: Apache-2.0
"""Prints a problem's entry point in each language that a candidate can be written in."""

from __future__ import annotations

from collections.abc import Callable

from .languages import CPP, CUDA, PYTHON, TRITON, Language
from .problem import Problem, c_parameters

_WIDTH = 100
Constants = tuple[str, ...]
"""Names of a Triton kernel's tl.constexpr parameters."""


def wrap_parameters(head: str, parameters: list[str], tail: str) -> str:
    """One line if it fits, else parameters filled below the opening bracket."""
    line = f"{head}({', '.join(parameters)}){tail}"
    if len(line) <= _WIDTH:
        return line
    lines, current = [], "   "
    for number, parameter in enumerate(parameters):
        piece = f" {parameter}" + ("," if number < len(parameters) - 1 else "")
        if len(current) + len(piece) > _WIDTH and current.strip():
            lines.append(current)
            current = "   "
        current += piece
    return "\n".join((f"{head}(", *lines, current)) + f"){tail}"


def _cpp(problem: Problem, _constants: Constants) -> str:
    return wrap_parameters(f'extern "C" void {problem.name}', c_parameters(problem), ";")


def _cuda(problem: Problem, _constants: Constants) -> str:
    return wrap_parameters(
        f'extern "C" __global__ void {problem.name}_kernel', c_parameters(problem), ";"
    )


def _triton(problem: Problem, constants: Constants) -> str:
    tensors = [f"{tensor.name}_ptr" for tensor in problem.tensors]
    parameters = [*problem.axes, *tensors, *(f"{name}: tl.constexpr" for name in constants)]
    return "@triton.jit\n" + wrap_parameters(f"def {problem.name}_kernel", parameters, ":")


def parameters_of_run(problem: Problem) -> list[str]:
    """What `run` of a Python candidate may take, by name."""
    return [*problem.axes, *(tensor.name for tensor in problem.tensors)]


def _python(problem: Problem, _constants: Constants) -> str:
    inputs = [tensor.name for tensor in problem.inputs]
    outputs = [tensor.name for tensor in problem.outputs]
    taken = wrap_parameters("def run", parameters_of_run(problem), " -> None:")
    forward = wrap_parameters("    def forward", ["self", *inputs], ":")
    returned = ", ".join(outputs)
    return f"""\
# {problem.name}, either way. torch tensors over shared memory: inputs are read-only, {returned} may
# be written. Parameters come by name: a function leaves out those that it has no use for.
{taken}
    ...  # writes {returned}

# Or as in KernelBench: the runner copies what is returned. `__init__` may take axes.
class ModelNew(torch.nn.Module):
{forward}
        ...
        return {returned}"""


_WRITTEN: dict[Language, Callable[[Problem, Constants], str]] = {
    CPP: _cpp,
    CUDA: _cuda,
    TRITON: _triton,
    PYTHON: _python,
}


def signature(
    problem: Problem, language: Language = CPP, *, constants: Constants = ("BLOCK",)
) -> str:
    """The entry point of a candidate for `problem`, without a body; `skeleton` gives one.

    In a language with launch plans it is what a plan may pass to a kernel; a kernel is free to take
    fewer arguments, and a plan to launch several kernels.
    """
    return _WRITTEN[language](problem, constants)
