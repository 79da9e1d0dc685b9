# SPDX-License-Identifier: Apache-2.0
"""What host code must be, what it is given, and in one sentence what it cannot do.

`runner.py` and the builder of Triton candidates load this file beside themselves; it imports
nothing of the package and is executed where the candidate is. `host_code.py` is the contract in
words.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

NAME = "candidate.py"
INIT_INPUTS = "get_init_inputs"

COMPILES = (
    "torch.compile starts a compiler, and host code may start no process: leave it out, or write "
    "the kernel in C++, CUDA or Triton (kernelwright problems NAME --signature LANGUAGE)"
)
EXTENDS_CUDA = (
    "compiles CUDA, which host code cannot do here: put the device code into a .cu file with a "
    "launch plan and evaluate that with --target sm_XX (kernelwright problems NAME --signature "
    "cuda prints one)"
)
EXTENDS = (
    "starts a compiler, and host code may start no process: put the C++ into a .cpp file of its "
    "own (kernelwright problems NAME --signature cpp prints its entry point)"
)
LAUNCHES = (
    "Triton kernels do not run on the target cpu: evaluate the file with --target sm_XX, or write "
    "the kernel in C++"
)
HAS_NO_GPU = (
    "the target cpu has no GPU, and all tensors stay where they are given: leave out .cuda() and "
    "device='cuda', or evaluate a Triton or CUDA file with --target sm_XX"
)
ON_CPU = {"triton": LAUNCHES, "torch.cuda": HAS_NO_GPU}
"""What else is out of reach where there is no device, by the package in which it fails."""


class Refusal(Exception):
    """Host code wants what it cannot have here: neither its mistake nor ours."""


def keep_from_compiling(torch: Any) -> None:
    """Refuses torch.compile where it is used: its first call fails too, but only after seconds."""
    plain = torch.compile

    @functools.wraps(plain)
    def compile(model: Any = None, **settings: Any) -> Any:
        if settings.get("backend", "inductor") != "inductor" or settings.get("disable"):
            return plain(model, **settings)
        raise Refusal(COMPILES)

    torch.compile = compile


def refusal(error: BaseException, also: Mapping[str, str]) -> Refusal | None:
    """Why the house, and not a mistake of its own, stopped the candidate; None: it was its own.

    Args:
        also: As ON_CPU.
    """
    chain = list(_chain(error))
    for one in chain:
        frames = list(_frames(one))
        if isinstance(one, Refusal):
            return _place_refusal(str(one), chain)
        if type(one).__module__.startswith(("torch._inductor", "torch._dynamo")):
            return _place_refusal(COMPILES, chain)
        for frame in frames:
            if _is_in("torch.utils.cpp_extension", frame):
                return _place_refusal(_word_extension(frame), chain)
        for package, words in also.items():
            if frames and _is_in(package, frames[-1]):
                return _place_refusal(words, chain)
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    current: BaseException | None = error
    seen: set[int] = set()
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _frames(error: BaseException) -> Iterator[types.FrameType]:
    place = error.__traceback__
    while place is not None:
        yield place.tb_frame
        place = place.tb_next


def _is_in(package: str, frame: types.FrameType) -> bool:
    name = str(frame.f_globals.get("__name__", ""))
    return name == package or name.startswith(package + ".")


def _word_extension(frame: types.FrameType) -> str:
    """For a frame of torch's extensions: the first of them is the function that was called."""
    given = frame.f_locals
    sources = given.get("sources") or ()
    files = [sources] if isinstance(sources, str) else list(sources)
    is_cuda = bool(given.get("cuda_sources")) or any(str(one).endswith(".cu") for one in files)
    called = f"torch.utils.cpp_extension.{frame.f_code.co_name}"
    return f"{called} {EXTENDS_CUDA if is_cuda else EXTENDS}"


def _place_refusal(words: str, chain: Sequence[BaseException]) -> Refusal:
    """The sentence behind the last line of the candidate that leads to it."""
    for error in chain:
        place, line = error.__traceback__, 0
        while place is not None:
            if place.tb_frame.f_code.co_filename == NAME:
                line = place.tb_lineno
            place = place.tb_next
        if line:
            return Refusal(f"line {line}: {words}")
    return Refusal(words)


def parameters(entry: Any) -> frozenset[str] | None:
    """The names that a function, or a class when it is made, can be given; None: any."""
    found = inspect.signature(entry).parameters.values()
    if any(one.kind is one.VAR_KEYWORD for one in found):
        return None
    return frozenset(one.name for one in found if one.kind is not one.VAR_POSITIONAL)


def check(entry: str, module: types.ModuleType, axes: Sequence[str], inputs: Sequence[str]) -> None:
    """Raises TypeError, with the contract, where ModelNew cannot be made or called."""
    model = getattr(module, entry)
    if entry != "ModelNew" or not inspect.isclass(model):
        return
    _arguments(module, dict.fromkeys(axes, 1))
    try:
        forward = inspect.signature(model.forward)  # type: ignore[attr-defined]
    except (AttributeError, TypeError, ValueError):
        return
    try:
        forward.bind(None, *inputs)
    except TypeError:
        raise TypeError(
            f"ModelNew.forward{forward} cannot be called: it is given all inputs of the problem in "
            f"their order, forward(self, {', '.join(inputs)}), and returns the outputs"
        ) from None


def make_model(module: types.ModuleType, axes: Mapping[str, int]) -> Any:
    """A new ModelNew: parameters named as axes get these, others what `get_init_inputs` gives.

    Raises:
        TypeError: neither gives what its constructor needs.
    """
    given = _arguments(module, axes)
    return module.ModelNew(*given.args, **given.kwargs)


def _arguments(module: types.ModuleType, axes: Mapping[str, int]) -> inspect.BoundArguments:
    taken = inspect.signature(module.ModelNew)
    positional, named = _init_inputs(module)
    try:
        found = taken.bind_partial(*positional, **named)
    except TypeError as error:
        raise TypeError(
            f"{INIT_INPUTS}() gives what ModelNew.__init__{taken} does not take: {error}"
        ) from None
    found.arguments.update({name: axes[name] for name in taken.parameters if name in axes})
    for one in taken.parameters.values():
        is_needed = one.default is one.empty and one.kind not in (
            one.VAR_POSITIONAL,
            one.VAR_KEYWORD,
        )
        if is_needed and one.name not in found.arguments:
            raise TypeError(
                f"ModelNew.__init__ needs '{one.name}', which is no axis of the problem "
                f"({', '.join(axes)}): give it a default, or define {INIT_INPUTS}() in the file, "
                "which returns a list of the arguments"
            )
    return found


def _init_inputs(module: types.ModuleType) -> tuple[Sequence[Any], dict[str, Any]]:
    """What the file's own function gives: a list, or a list and a dictionary in a list."""
    given = getattr(module, INIT_INPUTS, None)
    if given is None:
        return (), {}
    found = given()
    if not isinstance(found, list | tuple):
        raise TypeError(f"{INIT_INPUTS}() returns a {type(found).__name__}, not a list")
    match found:
        case [[*positional], dict(named)]:
            return positional, named
    return found, {}
