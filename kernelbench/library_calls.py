# SPDX-License-Identifier: Apache-2.0
"""The baselines of a problem's file, by the names of its functions.

    def by_torch(torch, x, y):             # what it returns is timed, again and again
        return lambda: torch.softmax(x, 1, out=y)

    def by_compile(torch, x):              # what it gives is copied into the outputs
        return torch.softmax(x, 1)

They are given what their parameters name: inputs and outputs (tensors, or arrays where the library
is numpy's or scipy's), axes, `torch`, and `call`, which is all of it (problem.BaselineCall). On a
sparse pattern also `structure`, `rows` (of every entry the number of its row), and `matrix` (the
CSR matrix of the pattern and the input `values`: scipy's, or torch's). A `by_compile` that asks for
one of `call`, `structure` and `rows` is not compiled itself: it gives a function, which writes, and
the tensors for it. Without a `by_torch` what is compiled is held as it stands, too: as torch eager.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import partial, wraps
from types import ModuleType
from typing import Any, NamedTuple

from . import reduced_calls, sampled_calls, softmax_calls, sparse_calls
from .problem import Baseline, BaselineCall, Handle, Prepared, Structure
from .sparse import INDPTR, VALUES, csr, row_numbers
from .torch_calls import csr_view, dense_view


class _Library(NamedTuple):
    name: str
    requires: str = "torch"
    takes_tensors: bool = True
    is_prepared: bool = False


NARROW = "by_floats"
"""What a user does on CPUs that multiply no narrow types; of problems that have some."""
LIBRARIES = {
    "by_torch": _Library("torch eager"),
    "by_compile": _Library("torch.compile"),
    NARROW: _Library("torch in floats"),
    "by_numpy": _Library("numpy", "numpy", takes_tensors=False),
    "by_scipy": _Library("scipy", "scipy", takes_tensors=False),
    "by_onednn": _Library("oneDNN", "torch.backends.mkldnn"),
    "by_mkl": _Library("MKL prepared", "", takes_tensors=False, is_prepared=True),
    "by_cupy": _Library("cupy", "cupy"),
}
"""Function → what it is held as. Those that a file has are its baselines, in this order."""
_EAGER, _COMPILED = "by_torch", "by_compile"
_WHOLE = {"call", "structure", "rows"}

Function = Callable[..., Any]

SHARED: dict[str, ModuleType] = {
    "sparse product": sparse_calls,
    "sparse reduction": reduced_calls,
    "sampled product": sampled_calls,
    "sparse softmax": softmax_calls,
}
"""Kinds of operators, by what a problem's `baselines` say: each module has such functions as a file
has, `fits`, which tells whether a problem is of its kind, and NEEDS, the same in words."""


def baselines_of(
    functions: Mapping[str, Function], writes_inputs: tuple[str, ...]
) -> tuple[Baseline, ...]:
    """The baselines among a file's functions."""
    prepared = {
        name: _prepare(functions[name], library)
        for name, library in LIBRARIES.items()
        if name in functions and name != _COMPILED
    }
    if _COMPILED in functions:
        prepared[_COMPILED] = _prepare_writing(functions[_COMPILED], _compile)
        prepared.setdefault(_EAGER, _prepare_writing(functions[_COMPILED], _leave_as_it_is))
    return tuple(
        Baseline(
            library.name,
            prepared[name],
            library.requires,
            is_prepared=library.is_prepared,
            writes_inputs=library.name in writes_inputs,
        )
        for name, library in LIBRARIES.items()
        if name in prepared
    )


def _prepare(function: Function, library: _Library) -> Callable[[BaselineCall], Prepared | Handle]:
    @wraps(function)
    def prepare(call: BaselineCall) -> Prepared | Handle:
        compute = function(**_arguments_of(function, call, tensors=library.takes_tensors))
        return compute if library.is_prepared or not _uses_torch(library) else _inferring(compute)

    return prepare


def _prepare_writing(
    function: Function, make: Callable[..., Prepared]
) -> Callable[[BaselineCall], Prepared]:
    """Of a `by_compile`, by what makes a call of a function, which writes, and of its tensors."""
    whole = _WHOLE & inspect.signature(function).parameters.keys()

    @wraps(function)
    def prepare(call: BaselineCall) -> Prepared:
        given = _arguments_of(function, call, tensors=True)
        if whole - call.inputs.keys() - call.axes.keys():
            writing, tensors = function(**given)
            return make(writing, *tensors)
        inputs = {name: given.pop(name) for name in list(given) if name in call.inputs}
        outputs = [dense_view(array) for array in call.outputs.values()]
        return make(_writing(function, tuple(inputs), given), *inputs.values(), *outputs)

    return prepare


def _compile(writing: Function, *tensors: Any) -> Prepared:
    from .compiled_calls import prepare_compiled

    return prepare_compiled(writing, *tensors)


def _leave_as_it_is(writing: Function, *tensors: Any) -> Prepared:
    return _inferring(partial(writing, *tensors))


def _writing(function: Function, names: tuple[str, ...], fixed: dict[str, Any]) -> Function:
    """The function, as one of the inputs of these names and then the outputs, which it writes."""

    def write(*tensors: Any) -> None:
        made = function(**fixed, **{name: tensors[at] for at, name in enumerate(names)})
        for at, value in enumerate(made if isinstance(made, tuple) else (made,)):
            tensors[len(names) + at].copy_(value)

    # What was compiled is kept by these (compiled_calls.py); its parameters stay its own.
    write.__module__, write.__qualname__ = function.__module__, function.__qualname__
    return write


def _uses_torch(library: _Library) -> bool:
    return library.requires.partition(".")[0] == "torch"


def _inferring(compute: Prepared) -> Prepared:
    import torch

    def infer() -> None:
        with torch.inference_mode():
            compute()

    return infer


def _arguments_of(function: Function, call: BaselineCall, *, tensors: bool) -> dict[str, Any]:
    """What its parameters name."""
    asked = inspect.signature(function).parameters
    known = {**_of_pattern(call, asked, tensors=tensors), **call.axes, "call": call}
    if tensors:
        import torch

        known["torch"] = torch
        arrays = {**call.inputs, **call.outputs}
        wanted = [name for name in asked if name in arrays]
        known |= {name: dense_view(arrays[name]) for name in wanted}
    else:
        known |= {**call.inputs, **call.outputs}
    return {name: known[name] for name in asked}


def _of_pattern(call: BaselineCall, asked: Iterable[str], *, tensors: bool) -> dict[str, Any]:
    """What there is of a sparse pattern beside its index arrays, as far as it is asked for."""
    if INDPTR.name not in call.inputs:
        return {}
    structure = Structure(call.axes, call.inputs)
    known: dict[str, Any] = {"structure": structure}
    if "rows" in asked:
        rows = row_numbers(structure)
        known["rows"] = dense_view(rows) if tensors else rows
    if "matrix" in asked and VALUES in call.inputs:
        values, columns = call.inputs[VALUES], call.axes["K"]
        known["matrix"] = (
            csr_view(call, columns=columns, values=values)
            if tensors
            else csr(structure, values, columns)
        )
    return known
