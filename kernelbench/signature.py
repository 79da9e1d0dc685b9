"""Prints a problem's entry point in each language that a candidate can be written in."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import UnknownNameError
from .problem import Problem, c_parameters

_WIDTH = 100


def _wrapped(head: str, parameters: list[str], tail: str) -> str:
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


def _cpp(problem: Problem) -> str:
    return _wrapped(f'extern "C" void {problem.name}', c_parameters(problem), ";")


def _cuda(problem: Problem) -> str:
    return _wrapped(f'extern "C" __global__ void {problem.name}_kernel', c_parameters(problem), ";")


def _triton(problem: Problem) -> str:
    tensors = [f"{tensor.name}_ptr" for tensor in problem.tensors]
    parameters = [*problem.axes, *tensors, "BLOCK: tl.constexpr"]
    return "@triton.jit\n" + _wrapped(f"def {problem.name}_kernel", parameters, ":")


def _python(problem: Problem) -> str:
    inputs = [tensor.name for tensor in problem.inputs]
    outputs = [tensor.name for tensor in problem.outputs]
    taken = _wrapped("def run", [*problem.axes, *inputs, *outputs], " -> None:")
    forward = _wrapped("    def forward", ["self", *inputs], ":")
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


_LANGUAGES: dict[str, Callable[[Problem], str]] = {
    "cpp": _cpp, "cuda": _cuda, "triton": _triton, "python": _python,
}  # fmt: skip


def languages() -> tuple[str, ...]:
    """The languages that an entry point can be printed in."""
    return tuple(_LANGUAGES)


def signature(problem: Problem, language: str = "cpp") -> str:
    """The entry point of a candidate for `problem`.

    For `cuda` and `triton` it is what a launch plan may pass to a kernel; a kernel is free to take
    fewer arguments, and a plan to launch several kernels.

    Raises:
        UnknownNameError: if the language has no signature.
    """
    if language not in _LANGUAGES:
        raise UnknownNameError.among("language", language, _LANGUAGES)
    return _LANGUAGES[language](problem)
