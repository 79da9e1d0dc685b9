# SPDX-License-Identifier: Apache-2.0
"""Baselines that are compiled: once for a function, its sizes and this machine, then kept on disk.

On the CPUs TorchInductor compiles ahead of time (AOTInductor): the same kernels as `torch.compile`
makes, called without its guards, and loaded in milliseconds by a process that needs neither dynamo
nor a compiler for it. On a device they are compiled in the process, as a user would.
"""

from __future__ import annotations

import hashlib
import linecache
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from .machine import processor
from .problem import Prepared
from .torch_calls import is_placed

_SETTINGS = {"aot_inductor.precompile_headers": False}
"""Precompiled headers lie among temporary files, which go with a campaign: making them anew takes
ten seconds, and they save three."""
_folders: list[Path] = []


def keep_compiled_in(folder: Path) -> None:
    """From now on, in this process, what was compiled is kept there, and looked for there."""
    _folders[:] = [folder]


def prepare_compiled(function: Callable[..., Any], *tensors: Any) -> Prepared:
    """A function of these tensors, compiled with every size static.

    The function writes its outputs, which are among the tensors.
    """
    if is_placed():
        return _compile_here(function, tensors)
    package = _folder() / f"{_key(function, tensors)}.pt2"
    if not package.exists():
        _compile_ahead(function, tensors, package)
    loaded, given = _load(package), list(tensors)

    def compute() -> None:
        loaded.run(given)

    compute()
    return compute


def _compile_here(function: Callable[..., Any], tensors: Sequence[Any]) -> Prepared:
    import torch

    fast = torch.compile(function, dynamic=False, fullgraph=True)

    def compute() -> None:
        with torch.inference_mode():
            fast(*tensors)

    with warnings.catch_warnings():
        # The first call compiles, and imports parts of torch that warn of their own deprecation.
        warnings.simplefilter("ignore")
        compute()
    return compute


def _compile_ahead(function: Callable[..., Any], tensors: Sequence[Any], package: Path) -> None:
    """Writes the package, whole or not at all."""
    import torch
    from torch._inductor import aoti_compile_and_package

    package.parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=package.parent) as folder,
        warnings.catch_warnings(),
        torch.no_grad(),
    ):
        warnings.simplefilter("ignore")
        module = torch.nn.Module()
        module.forward = function
        program = torch.export.export(module, tuple(tensors))
        made = aoti_compile_and_package(
            program, package_path=f"{folder}/made.pt2", inductor_configs=_SETTINGS
        )
        os.replace(made, package)


@cache
def _load(package: Path) -> Any:
    """What runs it. torch's own function for that imports all of its compiler first."""
    from torch._C._aoti import AOTIModelPackageLoader

    return AOTIModelPackageLoader(str(package), "model", False, 1, -1)


def _key(function: Callable[..., Any], tensors: Sequence[Any]) -> str:
    """Of all that the compiled code depends on: its module's words too, for what it calls."""
    import torch

    module = sys.modules[function.__module__].__file__
    assert module is not None
    facts = [
        torch.__version__,
        torch.get_num_threads(),
        processor().signature,
        # A user's file is only there (definition.py).
        linecache.getlines(module),
        function.__qualname__,
        function.__code__.co_firstlineno,
        [_name(cell.cell_contents) for cell in function.__closure__ or ()],
        [(t.dtype, tuple(t.shape), t.stride()) for t in tensors],
    ]
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:32]


def _name(held: Any) -> str:
    """Of what a function holds: a number, sizes, or another function."""
    return getattr(held, "__qualname__", None) or repr(held)


def _folder() -> Path:
    return _folders[0] if _folders else Path(_own_folder().name)


@cache
def _own_folder() -> tempfile.TemporaryDirectory[str]:
    """Of a process that was told of none."""
    return tempfile.TemporaryDirectory(prefix="compiled-")
