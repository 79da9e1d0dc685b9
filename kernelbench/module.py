# SPDX-License-Identifier: Apache-2.0
"""A PyTorch module as a problem: its answers, its parameters as inputs, and what is timed of it.

What `sandbox/definitions/tracing.py` writes for a module's file uses this, in the jails in which
problems run. Parameters are inputs: each draw has new ones, begun as the module begins them, so
that a kernel that ignores one is wrong. Buffers are inputs too, and constants: a mask of zeros and
ones that was moved a little would mask nothing. The module stays in the mode, training or
evaluation, in which its constructor leaves it, as KernelBench calls it. A file without a module may
have one function in its place.
"""

from __future__ import annotations

import ast
import hashlib
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..syntax import parse_python
from .families import draw
from .problem import Arrays, Family
from .shaking import shake_steps

MODEL, INPUTS, INIT_INPUTS = "Model", "get_inputs", "get_init_inputs"
"""What a file in KernelBench's form defines."""
SPREAD = 0.5
"""Of a parameter that begins as one number: by so much of it, or by so much where it is 0."""
STATISTICS = ("running_mean", "running_var", "num_batches_tracked")
"""Buffers of a normalisation that training moves."""


class TracedModule:
    """The module of a file, with its parameters by the names of the problem's inputs."""

    def __init__(
        self, source: str, place: str, tensors: Mapping[str, str], constants: Sequence[str] = ()
    ) -> None:
        """Executes the source.

        Args:
            place: what the file is called where it raises.
            tensors: Input of the problem → parameter or buffer of the module; the inputs of its
                `forward` are those of the problem that stand before.
            constants: those of them that no draw changes.
        """
        self._space = run_source(source, place)
        self._digest = hashlib.sha256(source.encode()).hexdigest()
        self._tensors = dict(tensors)
        self._constants = frozenset(constants)
        self._modules: dict[Any, Any] = {}
        self._fixed: dict[str, np.ndarray] = {}
        self._least: list[float] = []

    def __repr__(self) -> str:
        """By its source: what was compiled of it is kept under this name (compiled_calls.py)."""
        return f"TracedModule({self._digest})"

    def values(
        self, shapes: Mapping[str, tuple[int, ...]], family: Family, rng: np.random.Generator
    ) -> Arrays:
        """Inputs of the family, within the sign of the examples; parameters around their begin,
        constants as they are."""
        fixed, least = self._find_constants(), self._find_least()
        found = {}
        begun = _arrays_of(self._space, int(rng.integers(1 << 31)))
        for at, (name, shape) in enumerate(shapes.items()):
            if name in self._constants:
                found[name] = fixed[name]
            elif name in self._tensors:
                found[name] = _vary(begun[self._tensors[name]], rng)
            else:
                found[name] = _within(draw(family, shape, rng), least[at])
        return found

    def compute(self, **arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        """The outputs, in the type that the inputs have."""
        import torch

        with torch.no_grad(), shake_steps():
            found = self.call(**{name: torch.from_numpy(a) for name, a in arrays.items()})
        # A kernel writes a number without axes as an array of one.
        return tuple(np.atleast_1d(each.numpy()) for each in found)

    def call(self, **tensors: Any) -> tuple[Any, ...]:
        """The outputs for these tensors, as torch computes them."""
        import torch

        held = {self._tensors[name]: t for name, t in tensors.items() if name in self._tensors}
        given = tuple(t for name, t in tensors.items() if name not in self._tensors)
        module = self._module_like(next(iter(tensors.values())))
        found = torch.func.functional_call(module, held, given)
        return tuple(found) if isinstance(found, tuple | list) else (found,)

    def prepare(self, outputs: Sequence[Any], **tensors: Any) -> Any:
        """What is timed: a call of the module on these tensors, as its user makes it, whose answers
        go where they belong."""
        module = make_module(self._space).to(next(iter(tensors.values())).device)
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

    def prepare_writing(
        self, outputs: Sequence[Any], **tensors: Any
    ) -> tuple[Callable[..., None], tuple[Any, ...]]:
        """What is compiled: a function that writes the outputs, and the tensors for it.

        The module is made here: a compiler that met its making would take its parameters for its
        own.
        """
        self._module_like(next(iter(tensors.values())))
        names = tuple(tensors)

        def write(*given: Any) -> None:
            answers = self.call(**dict(zip(names, given, strict=False)))
            for output, each in zip(given[len(names) :], answers, strict=True):
                output.copy_(each)

        return write, (*tensors.values(), *outputs)

    def _module_like(self, tensor: Any) -> Any:
        """The module in a tensor's type and on its device, made once."""
        key = (tensor.dtype, tensor.device)
        if key not in self._modules:
            self._modules[key] = make_module(self._space).to(tensor.device, tensor.dtype)
        return self._modules[key]

    def _find_constants(self) -> dict[str, np.ndarray]:
        """Of each constant what it holds; what a constructor draws at random is drawn once."""
        if self._constants and not self._fixed:
            begun = _arrays_of(self._space, 0)
            self._fixed = {name: begun[self._tensors[name]] for name in self._constants}
        return self._fixed

    def _find_least(self) -> list[float]:
        """Of each input the least number that it may be: what the module takes with signs, or with
        zeros, is drawn with them, whatever the examples have (a `relu` shows on signs alone)."""
        if not self._least:
            import torch

            examples = list_examples(self._space[INPUTS]())[0]
            module = make_module(self._space)
            random = torch.Generator().manual_seed(0)
            for at, example in enumerate(examples):
                least = float(example.min()) if example.numel() else 0.0
                signs = torch.randint(0, 2, example.shape, generator=random) * 2.0 - 1.0
                if least >= 0 and _is_finite(module, examples, at, example * signs):
                    least = -1.0
                elif least > 0 and _is_finite(module, examples, at, example * (signs > 0)):
                    least = 0.0
                self._least.append(least)
        return self._least


def run_source(source: str, place: str) -> dict[str, Any]:
    """What a file in KernelBench's form defines; executes it. Where it has one function and no
    module, the module is what calls this function."""
    module = types.ModuleType("model")
    exec(compile(source, place, "exec"), vars(module))
    space, functions = vars(module), list_functions(source)
    if MODEL not in space and len(functions) == 1:
        space[MODEL] = _wrap(space[functions[0].name])
    return space


def list_functions(source: str) -> list[ast.FunctionDef]:
    """A file's functions that may be what it computes: those without an underscore in front."""
    return [
        node
        for node in parse_python(source).body
        if isinstance(node, ast.FunctionDef)
        and not node.name.startswith("_")
        and node.name not in (INPUTS, INIT_INPUTS)
    ]


def list_examples(given: Iterable[Any]) -> list[list[Any]]:
    """The sets of inputs that a file gives: one, or a list of several."""
    given = list(given)
    if given and all(isinstance(each, tuple | list) for each in given):
        return [list(each) for each in given]
    return [given]


def make_module(space: Mapping[str, Any]) -> Any:
    """The module, as its file makes it, in the mode in which its constructor leaves it."""
    arguments = space[INIT_INPUTS]() if INIT_INPUTS in space else []
    model = space[MODEL]
    module = model(**arguments) if isinstance(arguments, Mapping) else model(*arguments)
    for part in module.modules():
        if part.training and getattr(part, "track_running_stats", False):
            # In training it takes the batch's statistics; moving its own is no part of the answer.
            part.track_running_stats = False
            for name in STATISTICS:
                setattr(part, name, None)
    return module


def named_tensors(module: Any) -> list[tuple[str, Any]]:
    """Its parameters and buffers of floating point, by name; a shared one once."""
    seen: set[int] = set()
    found = []
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if tensor.is_floating_point() and id(tensor) not in seen:
            seen.add(id(tensor))
            found.append((name, tensor))
    return found


def is_constant(name: str, tensor: Any) -> bool:
    """Whether training leaves a parameter or buffer as it is."""
    return not tensor.requires_grad and name.rpartition(".")[2] not in STATISTICS


def name_entry(space: Mapping[str, Any]) -> str:
    """What of a file is the problem: its module, or its one function."""
    forward = vars(space[MODEL]).get("forward")
    return str(forward.__name__) if isinstance(forward, staticmethod) else MODEL


def _wrap(function: Callable[..., Any]) -> type:
    """A module's class whose forward is a function."""
    import torch

    return type(MODEL, (torch.nn.Module,), {"forward": staticmethod(function)})


def _arrays_of(space: Mapping[str, Any], seed: int) -> Arrays:
    """What the parameters and buffers of a new module hold."""
    import torch

    torch.manual_seed(seed)
    named = named_tensors(make_module(space))
    return {name: tensor.detach().numpy().astype(np.float32) for name, tensor in named}


def _vary(begun: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Values around those that a parameter begins with, of their sign."""
    lots = rng.uniform(-SPREAD, SPREAD, begun.shape)
    varied = np.where(begun == 0, lots, begun * (1 + lots))
    return varied.astype(np.float32)


def _is_finite(module: Any, examples: Sequence[Any], at: int, other: Any) -> bool:
    """Whether the module has finite answers with another input in place of an example."""
    import torch

    try:
        with torch.no_grad():
            found = module(*examples[:at], other, *examples[at + 1 :])
    except (RuntimeError, ValueError, IndexError):
        return False  # it asks for a range itself
    answers = found if isinstance(found, tuple | list) else (found,)
    return all(bool(torch.isfinite(each).all()) for each in answers)


def _within(drawn: np.ndarray, least: float) -> np.ndarray:
    """Without signs where the least is no negative number, without zeros where it is positive."""
    if least < 0:
        return drawn
    found = np.abs(drawn)
    return np.where(found == 0, np.float32(least), found) if least > 0 else found
