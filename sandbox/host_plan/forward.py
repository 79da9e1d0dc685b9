# SPDX-License-Identifier: Apache-2.0
"""Walks `ModelNew.forward` of a Python file that compiles CUDA inline, on symbols.

It may make tensors, look at shapes and call the functions of the inline source, as C++ host code
may. What computes on tensors beside them is refused with its line.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from . import library
from .calls import Frame
from .expressions import join, pick
from .module import Module, last_name, read_constant
from .statements import Recorder, Returned
from .tree import Function, Source
from .values import (
    HostCodeError,
    Number,
    Real,
    Several,
    Tensor,
    TypeName,
    Unknown,
    call,
    negate,
    number,
)

_SIGNS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "/",
    ast.Mod: "%",
    ast.Div: "/",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_NOTHING = frozenset(("synchronize", "save_for_backward", "manual_seed", "set_device"))


class Callee(NamedTuple):
    """A function that a constructor keeps."""

    name: str


class Forward:
    """Walks `forward` and the functions that it calls."""

    def __init__(
        self,
        module: Module,
        source: Source,
        recorder: Recorder,
        parameters: Mapping[str, Tensor],
    ) -> None:
        """Args:
        parameters: The problem's tensors by name; `self.linear.weight` is `linear_weight`.
        """
        self.module = module
        self.source = source
        self.recorder = recorder
        self.parameters = parameters
        self.own: dict[str, object] = {}

    def run(self, inputs: Sequence[Tensor]) -> object:
        """What `ModelNew.forward` gives for the problem's inputs. Raises HostCodeError."""
        model = self.module.classes.get("ModelNew") or self.module.classes.get("Model")
        if model is None:
            raise HostCodeError("there is no class ModelNew", 1)
        methods = {each.name: each for each in model.body if isinstance(each, ast.FunctionDef)}
        if "forward" not in methods:
            raise HostCodeError("ModelNew has no forward", model.lineno)
        self.methods = methods
        if "__init__" in methods:
            self._construct(methods["__init__"])
        forward = methods["forward"]
        taken = [each.arg for each in forward.args.args[1:]]
        # What a constructor would hold is an input of the problem, behind those of forward.
        names: dict[str, object] = dict(zip(taken, inputs, strict=False))
        return self._function(forward, names)

    def _construct(self, init: ast.FunctionDef) -> None:
        given = [each.arg for each in init.args.args[1:]]
        defaults = init.args.defaults
        names: dict[str, object] = {
            name: Unknown(f"'{name}' is an argument of the constructor") for name in given
        }
        for name, node in zip(given[len(given) - len(defaults) :], defaults, strict=True):
            names[name] = self._value(node, {})
        names.update(zip(given, self._list_constructor_values(), strict=False))
        for held in ast.walk(init):
            if isinstance(held, ast.Assign) and isinstance(held.targets[0], ast.Attribute):
                target = held.targets[0]
                if isinstance(target.value, ast.Name) and target.value.id == "self":
                    self.own[target.attr] = self._read_held(held.value, names)

    def _read_held(self, node: ast.expr, names: dict[str, object]) -> object:
        if isinstance(node, ast.Name | ast.Constant | ast.BinOp | ast.UnaryOp):
            return self._value(node, names)
        if isinstance(node, ast.Attribute):
            return Callee(node.attr)
        return Unknown(f"'{ast.unparse(node)[:40]}' is made by the constructor")

    def _list_constructor_values(self) -> list[object]:
        function = self.module.functions.get("get_init_inputs")
        if isinstance(function, ast.FunctionDef):
            for node in function.body:
                if isinstance(node, ast.Return) and isinstance(node.value, ast.List):
                    return [self._value(each, {}) for each in node.value.elts]
        return []

    def _function(self, function: ast.FunctionDef | ast.Lambda, names: dict[str, object]) -> object:
        if isinstance(function, ast.Lambda):
            return self._value(function.body, names)
        outer = len(self.recorder.when)
        try:
            self._block(function.body, names)
        except Returned as returned:
            return returned.value
        finally:
            del self.recorder.when[outer:]
        return None

    def _block(self, body: Sequence[ast.stmt], names: dict[str, object]) -> None:
        for node in body:
            self._statement(node, names)

    def _statement(self, node: ast.stmt, names: dict[str, object]) -> None:
        if isinstance(node, ast.Assign):
            value = self._value(node.value, names)
            for target in node.targets:
                self._assign(target, value, names)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._assign(node.target, self._value(node.value, names), names)
        elif isinstance(node, ast.Return):
            raise Returned(self._value(node.value, names) if node.value else None)
        elif isinstance(node, ast.Expr):
            self._value(node.value, names)
        elif isinstance(node, ast.If):
            self._if(node, names)
        elif isinstance(node, ast.With):
            self._block(node.body, names)
        elif not isinstance(node, ast.Pass | ast.Assert | ast.Raise | ast.Import | ast.ImportFrom):
            raise HostCodeError(f"forward has a '{type(node).__name__.lower()}'", node.lineno)

    def _assign(self, target: ast.expr, value: object, names: dict[str, object]) -> None:
        if isinstance(target, ast.Name):
            if isinstance(value, Tensor) and not value.buffer.hint:
                value.buffer.hint = target.id
            names[target.id] = value
        elif isinstance(target, ast.Tuple) and isinstance(value, Several):
            for each, item in zip(target.elts, value.items, strict=False):
                self._assign(each, item, names)
        elif isinstance(target, ast.Tuple):
            for each in target.elts:
                self._assign(each, Unknown("a part of what cannot be told"), names)

    def _if(self, node: ast.If, names: dict[str, object]) -> None:
        condition = self._value(node.test, names)
        if not isinstance(condition, Number):
            # It guards what is no contiguous float32 tensor on a device.
            return
        if condition.is_literal:
            self._block(node.body if int(condition.text) else node.orelse, names)
            return
        when = self.recorder.when
        depth = len(when)
        when.append(condition)
        try:
            self._block(node.body, names)
        except Returned as returned:
            del when[depth:]
            when.append(negate(condition))
            if not node.orelse:
                return
            self._block(node.orelse, names)
            raise returned from None
        del when[depth:]
        if node.orelse:
            when.append(negate(condition))
            self._block(node.orelse, names)
            del when[depth:]

    def _value(self, node: ast.expr, names: dict[str, object]) -> object:
        if isinstance(node, ast.Name):
            if node.id in self.module.functions and node.id not in names:
                return Callee(node.id)
            return names.get(node.id, self.module.names.get(node.id, Unknown(f"'{node.id}'")))
        if isinstance(node, ast.Constant):
            return read_constant(node)
        if isinstance(node, ast.Tuple | ast.List):
            return Several(tuple(self._value(each, names) for each in node.elts))
        if isinstance(node, ast.Attribute):
            return self._attribute(node, names)
        if isinstance(node, ast.Subscript):
            return self._subscript(node, names)
        if isinstance(node, ast.BinOp | ast.Compare | ast.BoolOp | ast.UnaryOp):
            return self._operation(node, names)
        if isinstance(node, ast.IfExp):
            chosen = self._value(node.test, names)
            if isinstance(chosen, Number) and chosen.is_literal:
                return self._value(node.body if int(chosen.text) else node.orelse, names)
        if isinstance(node, ast.Call):
            return self._call(node, names)
        return Unknown(f"'{ast.unparse(node)[:40]}' cannot be told from the text")

    def _operation(
        self, node: ast.BinOp | ast.Compare | ast.BoolOp | ast.UnaryOp, names: dict[str, object]
    ) -> object:
        if isinstance(node, ast.BoolOp):
            values = [self._value(each, names) for each in node.values]
            sign = "&&" if isinstance(node.op, ast.And) else "||"
            found = values[0]
            for each in values[1:]:
                found = join(sign, found, each)
            return found
        if isinstance(node, ast.UnaryOp):
            value = self._value(node.operand, names)
            if isinstance(node.op, ast.Not) and isinstance(value, Number):
                return negate(value)
            if isinstance(node.op, ast.USub) and isinstance(value, Number | Real):
                return join("-", number(0), value)
            return value
        left = node.left if isinstance(node, ast.BinOp | ast.Compare) else node
        operator = node.op if isinstance(node, ast.BinOp) else node.ops[0]
        right = node.right if isinstance(node, ast.BinOp) else node.comparators[0]
        one, other = self._value(left, names), self._value(right, names)
        sign = _SIGNS.get(type(operator), "")
        if not sign or isinstance(one, Tensor) or isinstance(other, Tensor):
            return Unknown(f"'{ast.unparse(node)[:60]}' computes outside the kernels")
        return join(sign, one, other)

    def _attribute(self, node: ast.Attribute, names: dict[str, object]) -> object:
        dotted = ast.unparse(node)
        if dotted.startswith("self."):
            name = dotted.removeprefix("self.")
            parameter = self.parameters.get(name.replace(".", "_"))
            if parameter is not None:
                return parameter
            return self.own.get(name, Unknown(f"'{dotted}' is no input of the problem"))
        if dotted.startswith("torch.") and library.names_dtype(node.attr):
            return TypeName(node.attr)
        owner = self._value(node.value, names)
        if isinstance(owner, Tensor):
            if node.attr in ("data", "T", "mT"):
                return owner if node.attr == "data" else Unknown("a transposed view")
            found = library.method(owner, node.attr, ())
            return Unknown(f"'{dotted}'") if found is None else found
        return owner if isinstance(owner, Unknown) else Unknown(f"'{dotted}'")

    def _subscript(self, node: ast.Subscript, names: dict[str, object]) -> object:
        owner, at = self._value(node.value, names), self._value(node.slice, names)
        if isinstance(owner, Several) and (found := pick(owner, at)) is not None:
            return found
        return Unknown(f"'{ast.unparse(node)[:40]}' cannot be told from the text")

    def _call(self, node: ast.Call, names: dict[str, object]) -> object:
        name = last_name(node.func)
        given = [
            self._value(each, names) for each in node.args if not isinstance(each, ast.Starred)
        ]
        named = {k.arg: self._value(k.value, names) for k in node.keywords if k.arg}
        held = self.own.get(name) if _is_own(node.func) else None
        name = held.name if isinstance(held, Callee) else name
        exported = self.source.exported.get(name, name)
        if functions := self.source.functions.get(exported):
            return self._inline(functions, [*given, *named.values()], node)
        own = self.methods.get(name) if ast.unparse(node.func) == f"self.{name}" else None
        if own is not None:
            return self._function(own, self._bind(own.args, 1, given, named))
        if function := self.module.functions.get(name):
            return self._function(function, self._bind(function.args, 0, given, named))
        if isinstance(node.func, ast.Attribute):
            model = self.module.classes.get(last_name(node.func.value))
            if name == "apply" and model is not None:
                return self._apply(model, given)
            owner = self._value(node.func.value, names)
            if isinstance(owner, Tensor):
                return self._method(owner, name, given, named, node)
        if library.is_maker(name):
            return library.make(name, given, named)
        if name in _NOTHING:
            return None
        if name in ("int", "float", "tuple", "list") and given:
            return given[0]
        if name in ("min", "max") and len(given) == 2:
            return _least(name, given)
        if any(isinstance(each, Tensor) for each in given):
            return Unknown(f"'{ast.unparse(node)[:60]}' computes outside the kernels")
        return Unknown(f"'{ast.unparse(node)[:40]}' cannot be told from the text")

    def _bind(
        self,
        arguments: ast.arguments,
        skipped: int,
        given: Sequence[object],
        named: Mapping[str, object],
    ) -> dict[str, object]:
        """The parameters of a function with what they are given, or with their defaults."""
        names = [each.arg for each in arguments.args[skipped:]]
        defaults = arguments.defaults
        first = len(names) - len(defaults)
        bound = {n: self._value(d, {}) for n, d in zip(names[first:], defaults, strict=True)}
        return {**bound, **dict(zip(names, given, strict=False)), **named}

    def _method(
        self,
        owner: Tensor,
        name: str,
        given: list[object],
        named: dict[str, object],
        node: ast.Call,
    ) -> object:
        if library.is_maker(name):
            return library.make(name, given, named, owner)
        found = library.method(owner, name, given)
        if found is None:
            return Unknown(f"'{ast.unparse(node)[:60]}' computes outside the kernels")
        return found

    def _apply(self, model: ast.ClassDef, given: list[object]) -> object:
        """`Function.apply(…)` of an autograd function: its forward."""
        for each in model.body:
            if isinstance(each, ast.FunctionDef) and each.name == "forward":
                return self._function(each, self._bind(each.args, 1, given, {}))
        return Unknown(f"{model.name}.apply")

    def _inline(self, functions: Sequence[Function], given: list[object], node: ast.Call) -> object:
        for value, argument in zip(given, node.args, strict=False):
            if isinstance(value, Unknown):
                said = ast.unparse(argument)[:60]
                raise HostCodeError(
                    f"the argument '{said}' cannot be told: {value.why}", node.lineno
                )
        frame = Frame(self.source, self.recorder)
        return frame.enter(functions[0], given, ())


def _is_own(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    )


def _least(name: str, given: Sequence[object]) -> object:
    one, other = given
    if isinstance(one, Number) and isinstance(other, Number):
        return call(name, one, other)
    return Unknown(name)
