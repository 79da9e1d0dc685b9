# SPDX-License-Identifier: Apache-2.0
"""Writes what host code launches as the front matter of a candidate."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from ...kernelbench.features import SPARSE_FEATURES
from ...kernelbench.problem import Problem
from ..plan.cuda_signature import CudaSource
from ..plan.expressions import FUNCTIONS, WORDS
from .values import (
    Buffer,
    Extent,
    HostCodeError,
    Launched,
    Number,
    Pointer,
    Ratio,
    Real,
    Tensor,
)

_MOST_KNOBS = 4
"""With five values each: more combinations than a plan may have are not looked at."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class PlanWriter:
    """Turns launches into the text of a plan for one problem."""

    def __init__(self, problem: Problem, launches: Sequence[Launched], device: CudaSource) -> None:
        self.problem = problem
        self.launches = launches
        self.device = device
        self.taken = {
            *problem.axes,
            *(tensor.name for tensor in (*problem.inputs, *problem.outputs)),
            *SPARSE_FEATURES,
            *FUNCTIONS,
            *WORDS,
        }
        self.knobs = self._find_knobs()
        self.scratch = self._name_scratch()

    def text(self) -> str:
        """The TOML."""
        parts = ['language = "cuda"']
        if self.knobs:
            lines = [f"{name} = {_write_knob(value)}" for name, value in self.knobs.items()]
            parts.append("\n".join(["[knobs]", *lines]))
        zeroed: set[int] = set()
        for launched in self.launches:
            for buffer in self._buffers(launched):
                if buffer.is_zeroed and buffer.number not in zeroed:
                    zeroed.add(buffer.number)
                    parts.append(f"[[launch]]\nzero = {_quoted(self._name(buffer))}")
            parts.append(self._launch(launched))
        for buffer in self.scratch:
            shape = ", ".join(self._item(each) for each in buffer.shape)
            dtype = _quoted(buffer.dtype)
            parts.append(f"[scratch.{self._name(buffer)}]\nshape = [{shape}]\ndtype = {dtype}")
        return "\n\n".join(parts) + "\n"

    def _launch(self, launched: Launched) -> str:
        lines = ["[[launch]]"]
        when = [self._express(each) for each in launched.when if each.text != "1"]
        bracketed = [f"({each})" if len(when) > 1 else each for each in when]
        condition = " and ".join(bracketed)
        if launched.zero is not None:
            lines.append(f"zero = {_quoted(self._name(launched.zero))}")
        else:
            lines.append(f"kernel = {_quoted(self._kernel(launched))}")
        if condition:
            lines.append(f"when = {_quoted(condition)}")
        if launched.zero is not None:
            return "\n".join(lines)
        assert launched.grid is not None
        assert launched.block is not None
        lines.append(f"grid = [{self._extent(launched.grid)}]")
        lines.append(f"block = [{self._extent(launched.block)}]")
        if launched.shared.text != "0":
            lines.append(f"shared_bytes = {self._item(launched.shared)}")
        lines.append(f"args = [{', '.join(self._arguments(launched))}]")
        return "\n".join(lines)

    def _kernel(self, launched: Launched) -> str:
        """The kernel with the namespaces that it stands in."""
        plain, bracket, rest = launched.kernel.partition("<")
        fitting = [n for n in self.device.names if n == plain or n.endswith(f"::{plain}")]
        return f"{fitting[0]}{bracket}{rest}" if fitting else launched.kernel

    def _arguments(self, launched: Launched) -> list[str]:
        found = self.device.signatures(self._kernel(launched))
        signatures = found if isinstance(found, tuple) else ()
        fitting = [
            each.parameters
            for each in signatures
            if each.parameters is not None and len(each.parameters) == len(launched.arguments)
        ]
        parameters = fitting[0] if fitting else ()
        dtypes = [each.dtype for each in parameters] or [""] * len(launched.arguments)
        return [
            self._argument(value, dtype, launched)
            for value, dtype in zip(launched.arguments, dtypes, strict=True)
        ]

    def _argument(self, value: object, dtype: str, launched: Launched) -> str:
        number: float | None = None
        if isinstance(value, Pointer):
            name = _quoted(self._name(value.buffer))
            if value.offset.text == "0":
                return name
            return f"{{buffer = {name}, offset = {self._item(value.offset)}}}"
        if isinstance(value, Real):
            number = value.value
        elif isinstance(value, Number) and dtype in ("float32", "float64") and value.is_literal:
            number = float(value.text)
        elif isinstance(value, Ratio) and value.above.is_literal and value.below.is_literal:
            number = int(value.above.text) / int(value.below.text)
        elif isinstance(value, Number):
            return self._item(value)
        elif isinstance(value, Ratio) and value.below.text == "1" and "float" not in dtype:
            return self._item(value.above)
        if number is not None:
            if dtype.startswith(("int", "uint")):
                return str(int(number))
            return f"{{{'f64' if dtype == 'float64' else 'f32'} = {number!r}}}"
        if isinstance(value, Tensor):
            what = "a tensor or an accessor; pass its data_ptr and its sizes"
        else:
            what = "a fraction that follows from sizes; plans take such numbers written out"
        raise HostCodeError(f"an argument of {launched.kernel} is {what}", launched.line)

    def _extent(self, extent: Extent) -> str:
        return ", ".join(self._item(each) for each in extent.parts)

    def _item(self, value: Number) -> str:
        """A number as TOML has it: an integer, or an expression in quotes."""
        text = self._express(value)
        return text if text.isdigit() else _quoted(text)

    def _express(self, value: Number) -> str:
        """The expression, with constants that are no knobs of the plan as numbers."""
        plain = {name: known for name, known in value.knobs if name not in self.knobs}
        return _NAME.sub(lambda found: str(plain.get(found[0], found[0])), value.text)

    def _find_knobs(self) -> dict[str, int]:
        """Named constants that shape a launch, and that no name of the problem's clashes with."""
        shaping: dict[str, int] = {}
        for launched in self.launches:
            shape = [launched.shared, *(launched.grid.parts if launched.grid else ())]
            for number in (*shape, *(launched.block.parts if launched.block else ())):
                shaping.update(number.knobs)
        free = {name: value for name, value in shaping.items() if name not in self.taken}
        return dict(list(free.items())[:_MOST_KNOBS])

    def _buffers(self, launched: Launched) -> Iterable[Buffer]:
        for value in launched.arguments:
            if isinstance(value, Pointer):
                yield value.buffer

    def _name_scratch(self) -> list[Buffer]:
        found: dict[int, Buffer] = {}
        names = {*self.taken, *self.knobs}
        for launched in self.launches:
            for buffer in self._buffers(launched):
                if not buffer.name and buffer.number not in found:
                    found[buffer.number] = buffer
                    name = re.sub(r"\W", "", buffer.hint) or "scratch"
                    while name in names or name[:1].isdigit():
                        name = f"{name}_"
                    names.add(name)
                    buffer.name = name
        return list(found.values())

    def _name(self, buffer: Buffer) -> str:
        if not buffer.name:
            raise HostCodeError(f"'{buffer.hint}' is set to zero and given to no kernel", 1)
        return buffer.name


_quoted = json.dumps


def _write_knob(value: int) -> str:
    """A knob with what else it may be: twice and half as much, while that is an integer."""
    found = [value]
    smaller, larger = value, value
    for _ in range(2):
        if smaller % 2 == 0:
            smaller //= 2
            found.append(smaller)
        if larger * 2 <= 1024:
            larger *= 2
            found.append(larger)
    if len(found) < 2:
        return str(value)
    return f"{{value = {value}, try = {sorted(found)}}}"
