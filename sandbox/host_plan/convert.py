# SPDX-License-Identifier: Apache-2.0
"""From a source as people publish it to a CUDA candidate with a launch plan, without running it.

What launches its kernels is found (the function that `ModelNew.forward` calls, the one that is
exported, the only one that nobody calls), walked on symbols, and written as a plan. Tensors and
sizes are those of the problem: of `forward` in its order, of a launcher of pointers by their names
where these are the problem's, else in its order. A wrong guess is a wrong candidate, which the
referee tells; what a plan cannot hold is refused with its line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ...kernelbench.languages import CUDA
from ...kernelbench.problem import Problem
from ..plan.cuda_signature import read_cuda
from ..plan.faults import PlanFault
from ..plan.parse import parse
from . import device_text as device
from .calls import Frame
from .forward import Forward
from .module import Module, compiles_cuda
from .statements import Recorder
from .tree import Function, Source, launches_below
from .values import (
    Buffer,
    HostCodeError,
    Number,
    Pointer,
    Several,
    Tensor,
    Unknown,
    number,
    operate,
)
from .write import PlanWriter

_WORDS = re.compile(r"^(?:d|dev|device|g|h|p|ptr)_|_(?:d|dev|device|ptr|gpu)$|^d(?=[A-Z])", re.I)


@dataclass(frozen=True)
class Converted:
    """A candidate with the plan that its host code said."""

    text: str
    notes: tuple[str, ...] = ()
    """What was taken for what, where it had to be guessed."""


def is_published_form(text: str) -> bool:
    """Whether it is CUDA with host code of its own in place of a launch plan."""
    return "/*---" not in text and ("__global__" in text) and ("<<<" in text)


def convert(text: str, problem: Problem) -> Converted | PlanFault:
    """The candidate of a source for one problem, or why there is none.

    Args:
        text: A `.cu` file, or a Python file with `load_inline`.
    """
    try:
        if compiles_cuda(text):
            try:
                module = Module(text)
            except SyntaxError as error:
                return PlanFault(f"it is no Python: {error.msg}", error.lineno or 1)
            inline = module.inline()
            return _Conversion(problem, Source(inline.text, inline.line), module).convert()
        return _Conversion(problem, Source(text), None).convert()
    except HostCodeError as error:
        return PlanFault(error.reason, error.line)
    except RecursionError:
        return PlanFault("its host code is nested too deeply to be read")


class _Conversion:
    def __init__(self, problem: Problem, source: Source, module: Module | None) -> None:
        self.problem = problem
        self.source = source
        self.module = module
        self.notes: list[str] = []
        self.inputs = {t.name: self._tensor(t.name) for t in problem.inputs}
        self.outputs = {t.name: self._tensor(t.name) for t in problem.outputs}

    def _tensor(self, name: str) -> Tensor:
        tensors = (*self.problem.inputs, *self.problem.outputs)
        declared = next(each for each in tensors if each.name == name)
        shape = tuple(_size(term) for term in declared.shape)
        return Tensor(Buffer(declared.dtype, shape, name), shape)

    def convert(self) -> Converted | PlanFault:
        """See `convert`."""
        if not any(launches_below(each.node) for each in self._functions()):
            raise HostCodeError(
                "nothing in the file launches a kernel (<<<grid, block>>>): write a launch plan, "
                "docs/launch-plans.md",
                1,
            )
        recorder = Recorder()
        if self.module is not None:
            forward = Forward(self.module, self.source, recorder, {**self.inputs})
            given = [self.inputs[tensor.name] for tensor in self.problem.inputs]
            result = forward.run(given)
        else:
            result = self._run_launcher(recorder)
        self._settle_outputs(result, recorder)
        if not any(each.kernel for each in recorder.launched):
            raise HostCodeError("what is called launches no kernel", 1)
        body = device.device_text(self.source)
        plan = PlanWriter(self.problem, recorder.launched, read_cuda(body)).text()
        text = CUDA.syntax.head(plan) + body
        fault = parse(text, CUDA.name)
        if isinstance(fault, PlanFault):
            return PlanFault(
                f"the launch plan that follows from its host code cannot be: {fault.reason}",
                recorder.launched[0].line,
            )
        return Converted(text, tuple(self.notes))

    def _functions(self) -> list[Function]:
        return [each for found in self.source.functions.values() for each in found]

    def _run_launcher(self, recorder: Recorder) -> object:
        function = self._find_launcher()
        recorder.protected = self._axes_by_name() if function.name == "main" else {}
        frame = Frame(self.source, recorder)
        if function.name == "main":
            return self._run_main(function, frame)
        return frame.enter(function, self._bind(function), ())

    def _find_launcher(self) -> Function:
        """What is exported, else whoever launches and is called by nobody but `main`."""
        for name in self.source.exported.values():
            if name in self.source.functions:
                return self.source.functions[name][0]
        launching = [each for each in self._functions() if self._launches(each, set())]
        named = {each.name for each in launching}
        called = {
            word
            for each in launching
            if each.name != "main"
            for word in re.findall(r"\b(\w+)\s*(?:<[^;{}()]*>)?\s*\(", self._body(each))
            if word in named and word != each.name
        }
        tops = [each for each in launching if each.name not in called and each.name != "main"]
        if not tops:
            tops = [each for each in launching if each.name == "main"] or launching
        if len(tops) > 1:
            self.notes.append(
                f"of {', '.join(each.name for each in tops)} the first is taken for the launcher"
            )
        return tops[0]

    def _launches(self, function: Function, seen: set[str]) -> bool:
        if launches_below(function.node):
            return True
        seen.add(function.name)
        words = set(re.findall(r"\b\w+\b", self._body(function)))
        return any(
            self._launches(each, seen)
            for each in self._functions()
            if each.name in words and each.name not in seen
        )

    def _body(self, function: Function) -> str:
        return self.source.say(function.body) if function.body is not None else ""

    def _axes_by_name(self) -> dict[str, Number]:
        axes = {axis: Number(axis) for axis in self.problem.axes}
        return {**axes, **{axis.lower(): value for axis, value in axes.items()}}

    def _bind(self, function: Function) -> list[object]:
        """What a launcher's parameters are of the problem."""
        tensors = [
            at
            for at, (_, written, is_pointer, _) in enumerate(function.parameters)
            if "Tensor" in written or (is_pointer and "cuda" not in written.lower())
        ]
        bound: dict[int, object] = {}
        for at, tensor in self._match_tensors(function, tensors):
            is_pointer = function.parameters[at][2]
            bound[at] = Pointer(tensor.buffer) if is_pointer else tensor
        integers = [
            at
            for at, (_, written, is_pointer, _) in enumerate(function.parameters)
            if at not in tensors and not is_pointer and _is_integer(written)
        ]
        bound.update(self._match_axes(function, integers))
        values: list[object] = []
        for at, (name, written, _, _) in enumerate(function.parameters):
            if at in bound:
                values.append(bound[at])
            elif function.defaults[at] is not None:
                values.append(Frame(self.source, Recorder()).value(function.defaults[at]))
            else:
                values.append(Unknown(f"nobody says what '{written} {name}' of {function.name} is"))
        return values

    def _match_tensors(self, function: Function, at: Sequence[int]) -> list[tuple[int, Tensor]]:
        known = {**self.inputs, **self.outputs}
        folded = {name.lower(): tensor for name, tensor in known.items()}
        names = [_WORDS.sub("", function.parameters[each][0]).lower() for each in at]
        if all(name in folded for name in names) and len(set(names)) == len(names):
            return [(each, folded[name]) for each, name in zip(at, names, strict=True)]
        listed = list(known.values())
        if len(at) not in (len(listed), len(self.inputs)):
            wanted = ", ".join(known)
            raise HostCodeError(
                f"{function.name} takes {len(at)} tensors, and {self.problem.name} has {wanted}; "
                "name them so",
                self.source.line(function.node),
            )
        if len(at) == len(listed):
            is_const = [function.parameters[each][3] for each in at]
            if is_const.count(False) == len(self.outputs) and any(is_const):
                at = [e for e, c in zip(at, is_const, strict=True) if c] + [
                    e for e, c in zip(at, is_const, strict=True) if not c
                ]
        pairs = list(zip(at, listed, strict=False))
        told = ", ".join(f"{function.parameters[e][0]} = {t.buffer.name}" for e, t in pairs)
        self.notes.append(f"tensors of {function.name} by their order: {told}")
        return pairs

    def _match_axes(self, function: Function, at: Sequence[int]) -> dict[int, object]:
        axes = self._axes_by_name()
        names = {each: function.parameters[each][0] for each in at}
        found: dict[int, object] = {e: axes[n] for e, n in names.items() if n in axes}
        left = [each for each in at if each not in found]
        taken = {value.text for value in found.values() if isinstance(value, Number)}
        free = [axis for axis in self.problem.axes if axis not in taken]
        if left and len(left) <= len(free) and (len(left) == len(free) or not found):
            for each, axis in zip(left, free, strict=False):
                found[each] = Number(axis)
            told = ", ".join(f"{names[e]} = {a}" for e, a in zip(left, free, strict=False))
            self.notes.append(f"sizes of {function.name} by their order: {told}")
        return found

    def _run_main(self, function: Function, frame: Frame) -> object:
        """A program: its buffers are the problem's by their names, its sizes by theirs."""
        known = {**self.inputs, **self.outputs}
        folded = {name.lower(): tensor for name, tensor in known.items()}
        pointers = set(
            re.findall(r"cudaMalloc\w*\s*\(\s*(?:\([^)]*\)\s*)?&(\w+)", self._body(function))
        )
        protected = dict(frame.recorder.protected)
        for pointer in pointers:
            plain = _WORDS.sub("", pointer).lower()
            if plain in folded:
                protected[pointer] = Pointer(folded[plain].buffer)
        frame.recorder.protected = protected
        frame.recorder.is_program = True
        assert function.body is not None
        frame.run(function.body)
        kept: dict[tuple[object, ...], object] = {}
        for launched in frame.recorder.launched:
            kept.setdefault(
                (launched.kernel, launched.grid, launched.block, launched.arguments), launched
            )
        # A program launches the same once more to warm up, and again to time it.
        frame.recorder.launched[:] = list(kept.values())  # type: ignore[arg-type]
        self.notes.append("of main each launch is taken once")
        return None

    def _settle_outputs(self, result: object, recorder: Recorder) -> None:
        """Which buffers are the problem's outputs."""
        items = result.items if isinstance(result, Several) else (result,)
        returned = [each for each in items if isinstance(each, Tensor)]
        bad = next((each for each in items if isinstance(each, Unknown)), None)
        if bad is not None:
            line = recorder.launched[-1].line if recorder.launched else 1
            raise HostCodeError(f"what it returns cannot be told: {bad.why}", line)
        names = [tensor.name for tensor in self.problem.outputs]
        if returned:
            for name, tensor in zip(names, returned, strict=False):
                if not tensor.buffer.name:
                    tensor.buffer.name = name
                elif tensor.buffer.name != name:
                    raise HostCodeError(f"it returns {tensor.buffer.name}, an input, for {name}", 1)
            if len(returned) < len(names):
                raise HostCodeError(f"it returns {len(returned)} of {len(names)} outputs", 1)


def _size(term: str) -> Number:
    """A size of the problem's, such as `M`, `64` or `M+1`."""
    found = number(0)
    for sign, word in re.findall(r"([+-]?)\s*(\w+)", term):
        value = number(int(word)) if word.isdigit() else Number(word)
        found = operate(sign or "+", found, value)
    is_sum = re.fullmatch(r"\s*\w+(?:\s*[+-]\s*\w+)*\s*", term)
    return found if is_sum else Number(f"({term})")


def _is_integer(written: str) -> bool:
    return written.split("::")[-1] in (
        "int",
        "int64_t",
        "int32_t",
        "size_t",
        "long",
        "unsigned",
        "uint32_t",
        "unsigned int",
        "long long",
    )
