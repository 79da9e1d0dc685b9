# SPDX-License-Identifier: Apache-2.0
"""A PyTorch module as a problem: its answers, its parameters as inputs, and what is timed of it.

What `sandbox/definitions/tracing.py` writes for a module's file uses this, in the jails in which
problems run. Parameters and buffers are inputs: each draw has new ones, begun as the module begins
them, so that a kernel that ignores one is wrong.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .families import draw
from .problem import Arrays, Family

MODEL, INPUTS, INIT_INPUTS = "Model", "get_inputs", "get_init_inputs"
"""What a file in KernelBench's form defines."""
SPREAD = 0.5
"""Of a parameter that begins as one number: by so much of it, or by so much where it is 0."""


class TracedModule:
    """The module of a file, with its parameters by the names of the problem's inputs."""

    def __init__(self, source: str, place: str, tensors: Mapping[str, str]) -> None:
        """Executes the source.

        Args:
            place: what the file is called where it raises.
            tensors: Input of the problem → parameter or buffer of the module; the inputs of its
                `forward` are those of the problem that stand before.
        """
        self._space = run_source(source, place)
        self._tensors = dict(tensors)
        self._modules: dict[Any, Any] = {}
        self._signs: list[bool] = []

    def values(
        self, shapes: Mapping[str, tuple[int, ...]], family: Family, rng: np.random.Generator
    ) -> Arrays:
        """Inputs of the family, within the sign of the examples; parameters around their begin."""
        import torch

        torch.manual_seed(int(rng.integers(1 << 31)))
        begun = dict(named_tensors(make_module(self._space)))
        examples = self._example_signs()
        found = {}
        for at, (name, shape) in enumerate(shapes.items()):
            if name in self._tensors:
                found[name] = _vary(begun[self._tensors[name]].detach().numpy(), rng)
                continue
            drawn = draw(family, shape, rng)
            found[name] = np.abs(drawn) if examples[at] else drawn
        return found

    def compute(self, **arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        """The outputs, in the type that the inputs have."""
        import torch

        with torch.no_grad():
            found = self.call(**{name: torch.from_numpy(a) for name, a in arrays.items()})
        return tuple(each.numpy() for each in found)

    def call(self, **tensors: Any) -> tuple[Any, ...]:
        """The outputs for these tensors, as torch computes them."""
        import torch

        dtype = next(iter(tensors.values())).dtype
        if dtype not in self._modules:
            self._modules[dtype] = make_module(self._space).to(dtype)
        held = {self._tensors[name]: t for name, t in tensors.items() if name in self._tensors}
        given = tuple(t for name, t in tensors.items() if name not in self._tensors)
        found = torch.func.functional_call(self._modules[dtype], held, given)
        return tuple(found) if isinstance(found, tuple | list) else (found,)

    def prepare(self, outputs: Sequence[Any], **tensors: Any) -> Any:
        """What is timed: a call of the module on these tensors, as its user makes it, whose answers
        go where they belong."""
        module = make_module(self._space)
        held = dict(named_tensors(module))
        for name, of in self._tensors.items():
            held[of].data = tensors[name]
        given = [tensor for name, tensor in tensors.items() if name not in self._tensors]

        def compute() -> None:
            answer = module(*given)
            answers = answer if isinstance(answer, tuple | list) else (answer,)
            for output, each in zip(outputs, answers, strict=True):
                output.copy_(each)

        return compute

    def _example_signs(self) -> list[bool]:
        """Of each input, whether the file's own examples are never negative."""
        if not self._signs:
            self._signs = [bool((t >= 0).all()) for t in self._space[INPUTS]()]
        return self._signs


def run_source(source: str, place: str) -> dict[str, Any]:
    """What a file in KernelBench's form defines; executes it."""
    module = types.ModuleType("model")
    exec(compile(source, place, "exec"), vars(module))
    return vars(module)


def make_module(space: Mapping[str, Any]) -> Any:
    """The module, as its file makes it, for evaluation."""
    arguments = space[INIT_INPUTS]() if INIT_INPUTS in space else []
    if isinstance(arguments, Mapping):
        return space[MODEL](**arguments).eval()
    return space[MODEL](*arguments).eval()


def named_tensors(module: Any) -> list[tuple[str, Any]]:
    """Its parameters and buffers of floating point, by name; a shared one once."""
    seen: set[int] = set()
    found = []
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if tensor.is_floating_point() and id(tensor) not in seen:
            seen.add(id(tensor))
            found.append((name, tensor))
    return found


def _vary(begun: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Values around those that a parameter begins with, of their sign."""
    lots = rng.uniform(-SPREAD, SPREAD, begun.shape)
    varied = np.where(begun == 0, lots, begun * (1 + lots))
    return varied.astype(np.float32)
