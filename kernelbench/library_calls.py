# SPDX-License-Identifier: Apache-2.0
"""The baselines of a problem's file, by the names of its functions.

    def by_torch(torch, x, y):             # what it returns is timed, again and again
        return lambda: torch.softmax(x, 1, out=y)

    def by_compile(torch, x):              # what it gives is copied into the outputs
        return torch.softmax(x, 1)

They are given what their parameters name: inputs and outputs (tensors, or arrays where the library
is numpy's or scipy's), axes, `torch`, and `call`, which is all of it (problem.BaselineCall). A
`by_compile` that asks for the call is not compiled itself: it gives a function, which writes, and
the tensors for it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, NamedTuple

from .problem import Baseline, BaselineCall, Handle, Prepared


class _Library(NamedTuple):
    name: str
    requires: str = "torch"
    takes_tensors: bool = True
    is_prepared: bool = False


LIBRARIES = {
    "by_torch": _Library("torch eager"),
    "by_compile": _Library("torch.compile"),
    "by_numpy": _Library("numpy", "numpy", takes_tensors=False),
    "by_scipy": _Library("scipy", "scipy", takes_tensors=False),
    "by_onednn": _Library("oneDNN", "torch.backends.mkldnn"),
    "by_mkl": _Library("MKL prepared", "", takes_tensors=False, is_prepared=True),
    "by_cupy": _Library("cupy", "cupy"),
}
"""Function → what it is held as. Those that a file has are its baselines, in this order."""
_COMPILED = "by_compile"

Function = Callable[..., Any]


def baselines_of(
    functions: Mapping[str, Function], writes_inputs: tuple[str, ...]
) -> tuple[Baseline, ...]:
    """The baselines among a file's functions."""
    return tuple(
        Baseline(
            library.name,
            _prepare_compiled(functions[name])
            if name == _COMPILED
            else _prepare(functions[name], library),
            library.requires,
            is_prepared=library.is_prepared,
            writes_inputs=library.name in writes_inputs,
        )
        for name, library in LIBRARIES.items()
        if name in functions
    )


def _prepare(function: Function, library: _Library) -> Callable[[BaselineCall], Prepared | Handle]:
    @wraps(function)
    def prepare(call: BaselineCall) -> Prepared | Handle:
        compute = function(**_arguments_of(function, call, tensors=library.takes_tensors))
        return compute if library.is_prepared or not _uses_torch(library) else _inferring(compute)

    return prepare


def _prepare_compiled(function: Function) -> Callable[[BaselineCall], Prepared]:
    asks_for_call = "call" in inspect.signature(function).parameters

    @wraps(function)
    def prepare(call: BaselineCall) -> Prepared:
        from .compiled_calls import prepare_compiled

        given = _arguments_of(function, call, tensors=True)
        if asks_for_call:
            writing, tensors = function(**given)
            return prepare_compiled(writing, *tensors)
        from .torch_calls import dense_view

        inputs = {name: given.pop(name) for name in list(given) if name in call.inputs}
        outputs = [dense_view(array) for array in call.outputs.values()]
        return prepare_compiled(
            _writing(function, tuple(inputs), given), *inputs.values(), *outputs
        )

    return prepare


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
    known: dict[str, Any] = {**call.axes, "call": call}
    if tensors:
        import torch

        from .torch_calls import dense_view

        known["torch"] = torch
        arrays = {**call.inputs, **call.outputs}
        wanted = [name for name in inspect.signature(function).parameters if name in arrays]
        known |= {name: dense_view(arrays[name]) for name in wanted}
    else:
        known |= {**call.inputs, **call.outputs}
    return {name: known[name] for name in inspect.signature(function).parameters}
