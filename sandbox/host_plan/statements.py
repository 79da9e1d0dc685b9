# SPDX-License-Identifier: Apache-2.0
"""Runs C++ host code on symbols: what it launches, in which order, under which conditions.

Branches on sizes become conditions of launches, loops are unrolled where their bounds are numbers,
checks and streams mean nothing here. Nothing is executed: it is a walk over the source's tree.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .expressions import Expressions, join, round_up
from .tree import Source, find, launches_below
from .values import (
    Extent,
    HostCodeError,
    Launched,
    Number,
    Pointer,
    Ratio,
    Real,
    Several,
    Tensor,
    TypeName,
    Unknown,
    as_extent,
    merge,
    negate,
    number,
)

if TYPE_CHECKING:
    from tree_sitter import Node

MOST_TURNS = 64
"""Of a loop."""
MOST_STEPS = 100_000
"""Expressions that are looked at: loops in loops and macros of macros come to any number."""
_ACCUMULATES = re.compile(r"\b(?:acc_type|opmath_type)\b")
"""Of float32 both are float."""


@dataclass
class Recorder:
    """What the host code launches, and what is known of sizes at the moment."""

    launched: list[Launched] = field(default_factory=list)
    when: list[Number] = field(default_factory=list)
    protected: Mapping[str, object] = field(default_factory=dict)
    """Names that stay what they are, whatever the host code gives them."""
    is_program: bool = False
    """It is walked from `main`: what repeats a launch there times it."""
    steps: int = 0
    """Expressions that were looked at."""
    constants: dict[str, int] = field(default_factory=dict)
    """The named constants of the source."""


class Returned(Exception):
    """Leaves a function with its value."""

    def __init__(self, value: object) -> None:
        super().__init__()
        self.value = value


class Statements(Expressions):
    """The statements of one call of a host function; calls stand in `calls.py`."""

    def __init__(
        self,
        source: Source,
        recorder: Recorder,
        names: dict[str, object] | None = None,
        depth: int = 0,
    ) -> None:
        self.source = source
        self.recorder = recorder
        self.names = dict(names or {})
        self.depth = depth
        self.constants = recorder.constants
        self.is_looping = False
        self.lambdas: dict[str, Node] = {}
        """Functions that are written where a variable is set to them."""

    def count_step(self, node: Node) -> None:
        """See Expressions. Raises HostCodeError after MOST_STEPS."""
        self.recorder.steps += 1
        if self.recorder.steps > MOST_STEPS:
            raise self.refusal_error("it takes too many steps to be followed", node)

    # Statements

    def run(self, body: Node) -> object:
        """Runs a function's body; what it returns, or None."""
        outer = len(self.recorder.when)
        try:
            self.statement(body)
        except Returned as returned:
            return returned.value
        finally:
            del self.recorder.when[outer:]
        return None

    def statement(self, node: Node) -> None:
        """Runs one statement."""
        kind = node.type
        if kind in (
            "compound_statement",
            "else_clause",
            "try_statement",
            "ERROR",
            "labeled_statement",
        ):
            for child in node.named_children:
                if child.type != "catch_clause":
                    self.statement(child)
        elif kind == "declaration":
            self._declare(node)
        elif kind in ("expression_statement",):
            for child in node.named_children:
                self.value(child)
        elif kind == "return_statement":
            raise Returned(self.value(node.named_children[0]) if node.named_children else None)
        elif kind == "if_statement":
            self._if(node)
        elif kind in ("for_statement", "while_statement", "do_statement"):
            self._loop(node)
        elif kind == "switch_statement":
            self._switch(node)
        elif kind in ("alias_declaration", "type_definition"):
            self._alias(node)
        elif launches_below(node):
            raise self.refusal_error(f"'{kind.replace('_', ' ')}' around a launch", node)

    def refusal_error(self, reason: str, node: Node) -> HostCodeError:
        """No plan can be written, and where that is."""
        return HostCodeError(reason, self.source.line(node))

    def _declare(self, node: Node) -> None:
        type_node = node.child_by_field_name("type")
        written = self.source.say(type_node) if type_node else ""
        for declarator in node.children_by_field_name("declarator"):
            inner = declarator.child_by_field_name("declarator") or declarator
            name_node = find(inner, "identifier")
            if name_node is None:
                continue
            name = self.source.say(name_node)
            value = declarator.child_by_field_name("value")
            is_pointer = find(declarator, "pointer_declarator") is not None
            if declarator.type == "function_declarator":
                self.names[name] = self._construct(written, declarator)
            elif value is None:
                listed = Several(())
                is_dim3 = written == "dim3"
                self.names[name] = (
                    self.extent(listed)
                    if is_dim3
                    else TypeName(f"{written}*")
                    if is_pointer
                    else Unknown(f"'{name}' was given no value")
                )
            elif value.type == "lambda_expression":
                self.lambdas[name] = value
            else:
                self._set(name, self._initial(written, value, name, is_pointer))

    def _construct(self, written: str, node: Node) -> object:
        """`dim3 grid(n, m);` is read as a function's declaration where all are names."""
        listed = node.child_by_field_name("parameters")
        words = [self.source.say(each) for each in listed.named_children] if listed else []
        items = tuple(self.look_up(word) for word in words)
        return self.extent(Several(items)) if written == "dim3" else Unknown(written)

    def _initial(self, written: str, value: Node, name: str, is_pointer: bool) -> object:
        found = self.value(value)
        if written == "dim3":
            return self.extent(found)
        is_list = value.type in ("argument_list", "initializer_list") and "vector" not in written
        if is_list and isinstance(found, Several) and len(found.items) == 1:
            found = found.items[0]
        if is_pointer or "Tensor" in written:
            return self._add_hint(found, name)
        if written.split("::")[-1] in ("float", "double"):
            return Ratio(found, number(1)) if isinstance(found, Number) else found
        if written not in ("auto", "bool") and isinstance(found, Ratio | Real):
            found = round_up(found, down=True)
        return self._add_hint(found, name) if self.is_looping else self.as_knob(name, found)

    def _add_hint(self, found: object, name: str) -> object:
        if isinstance(found, Tensor | Pointer) and not found.buffer.hint:
            found.buffer.hint = name
        return found

    def _set(self, name: str, value: object) -> None:
        if name in self.recorder.protected:
            value = self.recorder.protected[name]
        self.names[name] = value

    def _alias(self, node: Node) -> None:
        name, kind = node.child_by_field_name("name"), node.child_by_field_name("type")
        if kind is not None:
            name = name or find(node.child_by_field_name("declarator"), "type_identifier")
            if name is not None:
                is_wider = _ACCUMULATES.search(self.source.say(kind))
                self.names[self.source.say(name)] = (
                    TypeName("float") if is_wider else self.value(kind)
                )

    def _if(self, node: Node) -> None:
        condition_node = node.child_by_field_name("condition")
        one, other = (node.child_by_field_name(each) for each in ("consequence", "alternative"))
        condition = self.value(condition_node)
        if not isinstance(condition, Number):
            if any(each is not None and launches_below(each) for each in (one, other)):
                why = condition.why if isinstance(condition, Unknown) else "it is no number"
                raise self.refusal_error(f"the condition of a launch cannot be told: {why}", node)
            return  # a check
        if condition.value is not None and condition.is_literal:
            chosen = one if int(condition.text) else other
            if chosen is not None:
                self.statement(chosen)
            return
        self._branch(condition, one, other)

    def _branch(self, condition: Number, one: Node | None, other: Node | None) -> None:
        before, when = dict(self.names), self.recorder.when
        ends: list[tuple[dict[str, object], Returned | None]] = []
        for held, body in ((condition, one), (negate(condition), other)):
            self.names = dict(before)
            depth = len(when)
            when.append(held)
            left = None
            try:
                if body is not None:
                    self.statement(body)
            except Returned as returned:
                left = returned
            del when[depth:]
            ends.append((self.names, left))
        (first, left), (second, right) = ends
        if left and right:
            raise Returned(left.value if left.value is not None else right.value)
        if left or right:
            self.names = second if left else first
            when.append(negate(condition) if left else condition)
            return
        self.names = {
            name: merge(condition, first.get(name), second.get(name))
            for name in {**first, **second}
        }

    def _loop(self, node: Node) -> None:
        start = node.child_by_field_name("initializer")
        if start is not None:
            self.is_looping = True
            self.statement(start) if start.type == "declaration" else self.value(start)
            self.is_looping = False
        body = node.child_by_field_name("body")
        for turn in range(MOST_TURNS + 1):
            is_first = turn == 0 and node.type == "do_statement"
            goes = number(1) if is_first else self.value(node.child_by_field_name("condition"))
            known = goes.value if isinstance(goes, Number) else None
            if known == 0:
                return
            if known is None or turn == MOST_TURNS:
                if not launches_below(node):
                    self._forget(node)
                    return
                if self.recorder.is_program:
                    if body is not None:
                        self.statement(body)
                    return
                raise self.refusal_error(
                    "launches in a loop whose turns follow from sizes: a plan has one for each",
                    node,
                )
            if body is not None:
                self.statement(body)
            update = node.child_by_field_name("update")
            if update is not None:
                self.value(update)

    def _forget(self, node: Node) -> None:
        """What a loop sets that cannot be unrolled is not known behind it."""
        for child in _list_assigned(node):
            name = self.source.say(child)
            if name in self.names:
                self.names[name] = Unknown(f"'{name}' is set in a loop over sizes")

    def _switch(self, node: Node) -> None:
        value = self.value(node.child_by_field_name("condition"))
        body = node.child_by_field_name("body")
        if body is None or not launches_below(body):
            return
        if not isinstance(value, Number):
            raise self.refusal_error("the value of a switch around a launch cannot be told", node)
        others: list[Number] = []
        for case in (each for each in body.named_children if each.type == "case_statement"):
            given = case.child_by_field_name("value")
            label = self.value(given) if given is not None else None
            holds = join("==", value, label) if given is not None else None
            depth = len(self.recorder.when)
            before = dict(self.names)
            self.recorder.when += [holds] if isinstance(holds, Number) else list(others)
            others += [negate(holds)] if isinstance(holds, Number) else []
            for child in case.named_children:
                if child is not given and child.type != "break_statement":
                    self.statement(child)
            del self.recorder.when[depth:]
            self.names = before

    # Expressions with effects

    def _assignment_expression(self, node: Node) -> object:
        left, right = (node.child_by_field_name(side) for side in ("left", "right"))
        sign = self.source.say(node.child_by_field_name("operator"))  # type: ignore[arg-type]
        value = self.value(right)
        if left is not None and left.type == "field_expression":
            return self._set_part(left, value)
        if left is None or left.type != "identifier":
            return value
        name = self.source.say(left)
        if sign != "=":
            value = join(sign[:-1], self.names.get(name, Unknown(name)), value)
        self._set(name, value)
        return value

    def _set_part(self, left: Node, value: object) -> object:
        owner = left.child_by_field_name("argument")
        part = self.source.say(left.child_by_field_name("field"))  # type: ignore[arg-type]
        name = self.source.say(owner) if owner else ""
        extent = as_extent(self.names.get(name))
        if extent and isinstance(value, Number) and part in ("x", "y", "z"):
            now = {"x": extent.x, "y": extent.y, "z": extent.z, part: value}
            self.names[name] = Extent(**now)
        return value

    def _update_expression(self, node: Node) -> object:
        target = node.child_by_field_name("argument")
        name = self.source.say(target) if target else ""
        sign = "+" if "++" in self.source.say(node) else "-"
        value = join(sign, self.names.get(name, Unknown(name)), number(1))
        self._set(name, value)
        return value

    def _lambda_expression(self, _node: Node) -> object:
        return Unknown("a function")


def _list_assigned(node: Node) -> list[Node]:
    found = []
    for child in node.named_children:
        if child.type in ("assignment_expression", "update_expression"):
            target = child.child_by_field_name("left") or child.child_by_field_name("argument")
            found += [target] if target is not None and target.type == "identifier" else []
        found += _list_assigned(child)
    return found
