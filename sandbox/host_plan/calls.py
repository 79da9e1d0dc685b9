# SPDX-License-Identifier: Apache-2.0
"""Calls in C++ host code: launches, functions of the source, and those of torch and the runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import library
from .expressions import round_up
from .statements import Returned, Statements
from .tree import Function, find
from .values import (
    Buffer,
    HostCodeError,
    Launched,
    Number,
    Pointer,
    Ratio,
    Several,
    Tensor,
    TypeName,
    Unknown,
    Words,
    as_extent,
    call,
    number,
)

if TYPE_CHECKING:
    from tree_sitter import Node

MOST_DEPTH = 16
"""Of calls of host functions."""
_WRAPPERS = ("AT_DISPATCH", "AT_PRIVATE", "DISPATCH")
_QUIET = (
    "TORCH_CHECK",
    "AT_ASSERT",
    "AT_CHECK",
    "CHECK_",
    "printf",
    "assert",
    "fprintf",
    "AT_CUDA",
)
_CAST_CALLS = frozenset(("static_cast", "reinterpret_cast", "const_cast"))
_TYPE_CALLS = frozenset(("int", "size_t", "int64_t", "long", "unsigned", "float", "double"))
_C_NAMES = {"float32": "float", "float64": "double", "int32": "int", "int64": "long long"}
_FIRST = frozenset(("move", "forward", "value", "C10_CUDA_CHECK", "AT_CUDA_CHECK"))


class Frame(Statements):
    """One call of a host function."""

    # Calls

    def _call_expression(self, node: Node) -> object:
        function = node.child_by_field_name("function")
        listed = node.child_by_field_name("arguments")
        launch = next((c for c in node.children if c.type == "kernel_call_syntax"), None)
        given_nodes = list(listed.named_children) if listed else []
        given_nodes = [each for each in given_nodes if each.type != "comment"]
        if launch is not None and function is not None:
            return self._launch(node, function, launch, given_nodes)
        if function is None:
            return Unknown("a call")
        if function.type == "field_expression":
            return self._method(function, given_nodes)
        template: list[object] = []
        inner = function
        while inner.type == "qualified_identifier" and inner.child_by_field_name("name"):
            inner = inner.child_by_field_name("name")  # type: ignore[assignment]
        if inner.type == "template_function":
            arguments = inner.child_by_field_name("arguments")
            template = [self.value(each) for each in arguments.named_children] if arguments else []
            type_node = arguments.named_children[0] if arguments and template else None
            inner = inner.child_by_field_name("name")  # type: ignore[assignment]
            name = self.source.say(inner)
            if name in _CAST_CALLS:
                return self.cast(type_node, self.value(given_nodes[0]))
        return self.call(self.source.say(inner), given_nodes, template)

    def call(self, name: str, given_nodes: Sequence[Node], template: Sequence[object]) -> object:
        """A call by its plain name."""
        if name.startswith(_WRAPPERS):
            return self._dispatch(given_nodes)
        if name.startswith(_QUIET):
            return Unknown(f"{name}(…)")
        if name in self.lambdas:
            return self._call_lambda(self.lambdas[name], given_nodes)
        parameters, body = self.source.macros.get(name, (None, ""))
        if parameters is not None:
            return self._macro(name, parameters, body, given_nodes)
        functions = [
            each
            for each in self.source.functions.get(name, ())
            if len(given_nodes) <= len(each.parameters)
        ]
        given = [self.value(each) for each in given_nodes]
        if functions:
            return self.enter(functions[0], given, template)
        if name == "dim3":
            return self.extent(Several(tuple(given)))
        return self._call_library(name, given, given_nodes)

    def _call_library(self, name: str, given: list[object], nodes: Sequence[Node]) -> object:
        if len(given) == 2 and (found := _of_two(name, *given)) is not None:
            return found
        if name in ("ceil", "ceilf", "floor", "floorf") and given:
            return round_up(given[0], down=name.startswith("floor"))
        if name in ("sqrt", "sqrtf") and given:
            return library.sqrt(given[0])
        if name in _TYPE_CALLS and given:
            if name in ("float", "double"):
                return Ratio(given[0], number(1)) if isinstance(given[0], Number) else given[0]
            return round_up(given[0], down=True)
        if library.is_maker(name):
            return library.make(name, given, {})
        if name in ("TensorOptions", "dtype", "device"):
            dtype = next((library.dtype_of(each) for each in given if library.dtype_of(each)), "")
            return library.options(dtype or "float32")
        if name in ("cudaMemset", "cudaMemsetAsync") and given:
            self._zero(given[0], given[1] if len(given) > 1 else None, nodes[0])
        elif name in ("cudaMalloc", "cudaMallocAsync") and len(given) > 1:
            self._allocate(nodes[0], given[1])
        elif name in _FIRST and given:
            return given[0]
        return Unknown(f"{name}(…)")

    def _zero(self, value: object, byte: object, node: Node) -> None:
        if not isinstance(value, Pointer) or value.offset.text != "0":
            raise self.refusal_error("a part of a buffer is set to a value", node)
        if not isinstance(byte, Number) or byte.value != 0:
            raise self.refusal_error("a buffer is set to another value than zero", node)
        line, when = self.source.line(node), tuple(self.recorder.when)
        self.recorder.launched.append(Launched(line, when, zero=value.buffer))

    def _allocate(self, node: Node, size: object) -> None:
        target = find(node, "identifier")
        name = self.source.say(target) if target else ""
        written = self.names.get(name)
        buffer = library.allocate(written.name if isinstance(written, TypeName) else "", size)
        if isinstance(buffer, Buffer):
            buffer.hint = name
            self._set(name, Pointer(buffer))
        else:
            self._set(name, buffer)

    def _dispatch(self, given: Sequence[Node]) -> object:
        """`AT_DISPATCH_FLOATING_TYPES(type, "name", [&] { … })`: the type is float."""
        self.names["scalar_t"] = TypeName("float")
        body = next((found for each in given if (found := find(each, "lambda_expression"))), None)
        return self._call_lambda(body, ()) if body is not None else Unknown("a dispatch")

    def _call_lambda(self, node: Node, given: Sequence[Node]) -> object:
        declarator = find(node.child_by_field_name("declarator"), "parameter_list")
        values = [self.value(each) for each in given]
        for parameter, value in zip(
            declarator.named_children if declarator else (), values, strict=False
        ):
            if found := find(parameter.child_by_field_name("declarator"), "identifier"):
                self.names[self.source.say(found)] = value
        body = node.child_by_field_name("body")
        try:
            if body is not None:
                self.statement(body)
        except Returned as returned:
            return returned.value
        return None

    def _macro(
        self, name: str, parameters: tuple[str, ...], body: str, given: Sequence[Node]
    ) -> object:
        kept = dict(self.names)
        for parameter, node in zip(parameters, given, strict=False):
            self.names[parameter] = self.value(node)
        found = self.parse_text(body)
        changed = {k: v for k, v in self.names.items() if k in kept and k not in parameters}
        self.names = {**kept, **changed}
        return found if not isinstance(found, Unknown) else Unknown(f"the macro {name}")

    def enter(
        self,
        function: Function,
        given: Sequence[object],
        template: Sequence[object],
    ) -> object:
        """Runs a function of the source with these arguments."""
        if self.depth >= MOST_DEPTH:
            raise HostCodeError(f"{function.name} calls itself", self.source.line(function.node))
        frame = Frame(self.source, self.recorder, None, self.depth + 1)
        for name, value in zip(function.template, template, strict=False):
            frame.names[name] = value
        values = list(given)
        _deduce(frame.names, function, given)
        for (name, written, is_pointer, _), default in zip(
            function.parameters, function.defaults, strict=True
        ):
            value = values.pop(0) if values else self.value(default)
            if is_pointer or "Tensor" in written:
                frame.names[name] = value
            else:
                frame.names[name] = frame._as(written, value)
        assert function.body is not None
        return frame.run(function.body)

    def _as(self, written: str, value: object) -> object:
        if written.split("::")[-1] in ("float", "double") and isinstance(value, Number):
            return Ratio(value, number(1))
        return value

    def _method(self, function: Node, nodes: Sequence[Node]) -> object:
        owner_node = function.child_by_field_name("argument")
        field_node = function.child_by_field_name("field")
        if field_node is not None and field_node.type == "template_method":
            field_node = field_node.child_by_field_name("name")
        name = self.source.say(field_node) if field_node else ""
        owner = self.value(owner_node)
        given = [self.value(each) for each in nodes]
        if isinstance(owner, Tensor):
            return self._tensor_method(owner, name, given, function)
        if isinstance(owner, Several) and name in ("dtype", "device", "requires_grad", "layout"):
            dtype = library.dtype_of(given[0]) if given and name == "dtype" else ""
            return library.options(dtype) if dtype else owner
        if isinstance(owner, Several) and name in ("size", "numel"):
            return number(len(owner.items))
        return owner if isinstance(owner, Unknown) else Unknown(f"{name}()")

    def _tensor_method(self, owner: Tensor, name: str, given: list[object], node: Node) -> object:
        if name in ("zero_", "fill_"):
            self._zero(Pointer(owner.buffer), given[0] if given else number(0), node)
            return owner
        if library.is_maker(name):
            return library.make(name, given, {}, owner)
        found = library.method(owner, name, given)
        if found is None:
            return Unknown(f"'{self.source.say(node)[:60]}' computes outside the kernels")
        return found

    def _launch(self, node: Node, function: Node, launch: Node, given: Sequence[Node]) -> object:
        parts = [each for each in launch.named_children if each.type != "comment"]
        grid, block = (as_extent(self._must(each, "grid or block")) for each in parts[:2])
        if grid is None or block is None:
            raise self.refusal_error("the grid or the block is no number and no dim3", node)
        shared = self._must(parts[2], "shared memory") if len(parts) > 2 else number(0)
        if not isinstance(shared, Number):
            raise self.refusal_error("the bytes of shared memory cannot be told", node)
        arguments = tuple(self._must(each, "argument") for each in given)
        self.recorder.launched.append(
            Launched(
                self.source.line(node),
                tuple(self.recorder.when),
                self._kernel(function),
                grid,
                block,
                shared,
                arguments,
            )
        )
        return None

    def _must(self, node: Node, what: str) -> object:
        value = self.value(node)
        if isinstance(value, Unknown):
            said = self.source.say(node)[:60]
            raise self.refusal_error(f"the {what} '{said}' cannot be told: {value.why}", node)
        return value

    def _kernel(self, function: Node) -> str:
        """The kernel's name, an instance where it is a template."""
        if function.type != "template_function":
            return self.source.say(function).removeprefix("::")
        name = self.source.say(function.child_by_field_name("name"))  # type: ignore[arg-type]
        listed = function.child_by_field_name("arguments")
        words = []
        for each in listed.named_children if listed else ():
            value = self.value(each)
            if isinstance(value, TypeName):
                words.append(value.name)
            elif isinstance(value, Number) and value.value is not None:
                is_global = value.text in self.source.macros or value.text in self.source.constants
                words.append(value.text if is_global else str(value.value))
            elif isinstance(value, Words | Unknown | Number):
                raise self.refusal_error(
                    f"the template argument '{self.source.say(each)}' follows from sizes; launch "
                    "an instance for each of its values",
                    each,
                )
        return f"{name}<{', '.join(words)}>"


def _of_two(name: str, one: object, other: object) -> Number | None:
    """`min`, `max` and the rounded-up division of two integers; None of anything else."""
    known = {"min": "min", "max": "max", "ceil_div": "cdiv", "CeilDiv": "cdiv", "div_up": "cdiv"}
    if name in known and isinstance(one, Number) and isinstance(other, Number):
        return call(known[name], one, other)
    return None


def _deduce(names: dict[str, object], function: Function, given: Sequence[object]) -> None:
    """Types that a template takes from its arguments."""
    for (_, written, _, _), value in zip(function.parameters, given, strict=False):
        if written in function.template and written not in names:
            dtype = value.buffer.dtype if isinstance(value, Pointer) else ""
            type_name = _C_NAMES.get(dtype, "int" if isinstance(value, Number) else "float")
            names[written] = TypeName(type_name)
