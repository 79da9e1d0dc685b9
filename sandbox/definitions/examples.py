# SPDX-License-Identifier: Apache-2.0
"""What a PyTorch file has to be a problem: a module or one function, and examples of its inputs.

Several sets of examples say which sizes vary: one that differs between them must be free in the
trace.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from ...kernelbench.module import INIT_INPUTS, INPUTS, MODEL, list_functions, name_entry
from .refusals import CannotTraceError, line_of_examples
from .trace_sizes import WrongSizeError, read_sizes

_FORM = (
    "a file has class Model(nn.Module), get_inputs() and, where its constructor takes anything, "
    "get_init_inputs(); or one function and get_inputs()"
)


def ensure_entry(space: Mapping[str, Any], source: str) -> None:
    """Raises CannotTraceError where a file does not say what it computes, or of what."""
    if INPUTS not in space:
        raise CannotTraceError(f"it defines no {INPUTS}, as KernelBench's files do", hint=_FORM)
    functions = list_functions(source)
    if MODEL not in space and not functions:
        raise CannotTraceError(f"it defines neither {MODEL} nor a function to compute", hint=_FORM)
    if MODEL not in space:
        told = ", ".join(f"'{each.name}'" for each in functions)
        raise CannotTraceError(
            f"it defines no {MODEL}, and of its functions {told} each may be what it computes",
            functions[1].lineno,
            "begin the names of those that only help with an underscore",
        )
    if INIT_INPUTS in space and name_entry(space) != MODEL:
        raise CannotTraceError(
            f"{INIT_INPUTS} is for the constructor of a {MODEL}, and there is a function alone",
            line_of_examples(source, INIT_INPUTS),
            f"leave {INIT_INPUTS} out: a number that never changes may stand in the function",
        )


def ensure_in_order(module: Any, given: Any, source: str) -> None:
    """Raises CannotTraceError where inputs have names in place of an order, as a kernel's have."""
    import torch

    if isinstance(given, Mapping | torch.Tensor):
        raise CannotTraceError(
            f"{INPUTS} gives a {type(given).__name__}, and inputs are a list in the order of "
            "forward's parameters",
            line_of_examples(source, INPUTS),
            "return a list of float32 tensors, also of a single one",
        )
    for each in inspect.signature(module.forward).parameters.values():
        if each.kind is each.KEYWORD_ONLY and each.default is each.empty:
            raise CannotTraceError(
                f"forward takes '{each.name}' by its name alone, and inputs come in order",
                _line_of_forward(module),
                "take the star out of its parameters, or give that one a default",
            )


def ensure_answers(module: Any, examples: Sequence[Any]) -> None:
    """Raises CannotTraceError where a module gives anything but tensors for a set of examples."""
    import torch

    with torch.no_grad():
        found = module(*(each.clone() for each in examples))
    answers = found if isinstance(found, tuple | list) else (found,)
    kinds = [type(each).__name__ for each in answers if not isinstance(each, torch.Tensor)]
    if kinds or not answers:
        raise CannotTraceError(
            f"forward gives {f'a {kinds[0]}' if kinds else 'nothing'}: answers are one tensor or a "
            "flat tuple of tensors, as a kernel has outputs",
            _line_of_forward(module),
            "return a tensor or several, return (a, b); write a new tensor in place of an input",
        )


def _line_of_forward(module: Any) -> int:
    """0 where it is no function of Python's."""
    return int(getattr(getattr(module.forward, "__code__", None), "co_firstlineno", 0))


def ensure_examples(sets: Sequence[Sequence[Any]], names: Sequence[str], source: str) -> None:
    """Raises CannotTraceError where a set of examples is not of float32 tensors, one for each of
    these parameters, of as many axes as in the first."""
    import torch

    line = line_of_examples(source, INPUTS)
    for number, examples in enumerate(sets, 1):
        if len(examples) != len(names):
            raise CannotTraceError(
                f"{INPUTS} gives {len(names)} inputs in example 1 and {len(examples)} in example "
                f"{number}",
                line,
                "give as many in each example",
            )
        for name, example, first in zip(names, examples, sets[0], strict=True):
            if not isinstance(example, torch.Tensor) or example.dtype != torch.float32:
                kind = getattr(example, "dtype", type(example).__name__)
                raise CannotTraceError(
                    f"{INPUTS} gives {kind} for the parameter '{name}': inputs are float32 tensors",
                    line,
                    _advise(example),
                )
            if not example.numel():
                raise CannotTraceError(
                    f"{INPUTS} gives {tuple(example.shape)} for the parameter '{name}': nothing is "
                    "computed of a size of 0",
                    line,
                    "give examples whose sizes are 1 at least",
                )
            if example.ndim != first.ndim:
                raise CannotTraceError(
                    f"'{name}' has {first.ndim} axes in example 1 of {INPUTS} and {example.ndim} "
                    f"in example {number}",
                    line,
                    "give a file to each number of axes: a kernel has one",
                )


def _advise(example: Any) -> str:
    """What to give in place of an example that is no float32 tensor."""
    import torch

    if not isinstance(example, torch.Tensor):
        return (
            "give float32 tensors; a number that never changes belongs into the constructor, or "
            "into the function"
        )
    if example.is_floating_point():
        return "give float32 tensors: other precisions of inputs are not taken"
    return (
        "give a mask as float32 of 0 and 1; make indices that never change in the constructor "
        "(register_buffer); those that vary from call to call are not taken"
    )


def choose_traced(sets: Sequence[Sequence[Any]]) -> Sequence[Any]:
    """The set that is traced: of the fewest sizes of 1, which a trace takes as fixed."""
    return min(sets, key=lambda each: sum(size == 1 for tensor in each for size in tensor.shape))


def list_sizes(
    program: Any, sets: Sequence[Sequence[Any]], names: Sequence[str], source: str
) -> list[dict[Any, int]]:
    """Of each set the symbolic sizes. Raises CannotTraceError where the trace does not hold for
    one, as where a size differs that is fixed."""
    found = []
    for number, examples in enumerate(sets, 1):
        try:
            found.append(read_sizes(program, [tuple(each.shape) for each in examples]))
        except WrongSizeError as error:
            at, axis = error.place
            raise CannotTraceError(
                f"axis {axis} of '{names[at]}' is {error.size} in example {number} of {INPUTS}, "
                f"and by its trace the file computes with {error.wanted} alone: sizes that differ "
                "between examples must be free",
                line_of_examples(source, INPUTS),
                "give this size as it must be in each example, or take out of the code what "
                "fixes it (a view in parts of one length, a number in place of x.shape)",
            ) from error
    return found
