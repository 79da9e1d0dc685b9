# SPDX-License-Identifier: Apache-2.0
"""Why a PyTorch module's file is no problem: in a paragraph, with its line and what to do.

What a trace shows and no problem can state: answers that are drawn at random, or are no float32,
and tensors that `forward` writes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from ...syntax import parse_python
from .inside import describe_error, find_line
from .wire import Message

_STILL = {"p": 0, "dropout_p": 0, "dropout": 0, "train": False, "training": False}
"""Arguments of a random operation → the value with which it draws nothing."""
_EVALUATE = (
    "KernelBench calls a module in the mode in which its constructor leaves it, training: call "
    "self.eval() at the end of __init__, or leave what is random out (p=0)"
)
_KNOWN = (
    (
        r"data-dependent|DataDependent|UserError.*control flow",
        "forward branches on what a tensor holds, or gives a tensor whose size that decides",
        "compute both and choose by torch.where, or decide by shapes alone",
    ),
    (
        r"not compiled with CUDA|No CUDA GPUs|NVIDIA driver",
        "the file asks for a GPU, and a module is traced without one",
        "leave device=… and .cuda() out: kernels are given tensors where they run",
    ),
    (
        r"URLError|ConnectionError|gaierror|name resolution|Network is unreachable|HTTPError",
        "the file asks the network, and a module is traced in a jail without one",
        "make its weights in the file, as torch.randn does, or leave them out: parameters are "
        "inputs, and vary from call to call",
    ),
    (
        r"FileNotFoundError|PermissionError",
        "the file reads another file, and a module is traced in a jail without any of yours",
        "put what it needs into the module's own file",
    ),
)
"""What an exception's words look like → what it means, what to do."""
_HINT = (
    "torch.export must be able to trace forward with the tensors of get_inputs "
    "(docs/own-operator.md, What is read of a PyTorch module)"
)


class CannotTraceError(Exception):
    """The file is no problem that we can state; the message says why."""

    def __init__(self, why: str, line: int = 0, hint: str = _HINT) -> None:
        """With the line of the file and the remedy, where they are known."""
        super().__init__(why)
        self.line, self.hint = line, hint


def explain(error: BaseException, place: str) -> Message:
    """What is told of an exception that the file or its trace raised."""
    line = find_line(error, place)
    if isinstance(error, CannotTraceError):
        return {"why": str(error), "line": error.line or line, "hint": error.hint}
    raw = f"{type(error).__name__}: {error}"
    for pattern, why, hint in _KNOWN:
        if re.search(pattern, raw):
            return {"why": why, "line": line or _line_in(raw, place), "hint": hint}
    # torch adds paragraphs of advice on its own settings.
    first = describe_error(error).partition("\n")[0]
    return {"why": first, "line": line or _line_in(raw, place), "hint": _HINT}


def line_of_examples(source: str, function: str) -> int:
    """Where a function of the file returns; 0 where it is made in another way."""
    for node in parse_python(source).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            returns = [each.lineno for each in ast.walk(node) if isinstance(each, ast.Return)]
            return max(returns, default=node.lineno)
    return 0


def line_of_node(node: Any, place: str) -> int:
    """The line of the file that an operation of a trace comes from; 0: none."""
    return _line_in(node.meta.get("stack_trace") or "", place)


def ensure_statable(program: Any, place: str) -> None:
    """Raises CannotTraceError where a trace is no function of its inputs with float32 answers."""
    _ensure_precision(program, place)
    for node in program.graph.nodes:
        if node.op == "call_function" and _draws(node):
            raise CannotTraceError(
                f"forward draws at random ({_name(node)}), so that it has no right answer",
                line_of_node(node, place),
                _EVALUATE,
            )
        for written in _written_by(node):
            kind = "its buffer or parameter" if written.target[:2] in ("b_", "p_") else "its input"
            raise CannotTraceError(
                f"forward writes into {kind} '{_name_tensor(program, written)}' ({_name(node)}), "
                "and a kernel writes outputs alone",
                line_of_node(node, place),
                "compute a new tensor in place of the operation that ends in an underscore",
            )
    _ensure_floats(program, place)


def _ensure_precision(program: Any, place: str) -> None:
    """The oracle is the module in float64: what rounds to half precision within would round there
    too, and no law says how far another order of roundings may be off."""
    import torch

    for node in program.graph.nodes:
        dtype = getattr(node.meta.get("val"), "dtype", None)
        if dtype is None or not dtype.is_floating_point or dtype in (torch.float32, torch.float64):
            continue
        is_held = node.op == "placeholder"
        tensor, step = _name_tensor(program, node), _name(node)
        what = f"'{tensor}' is {dtype}" if is_held else f"forward computes in {dtype} ({step})"
        raise CannotTraceError(
            f"{what}: modules are traced in float32, and answer in float64",
            0 if is_held else line_of_node(node, place),
            "leave .half(), .bfloat16() and dtype=… out: what a kernel computes in is its own "
            "choice, within float32's limits",
        )


def _ensure_floats(program: Any, place: str) -> None:
    import torch

    by_name = {node.name: node for node in program.graph.nodes}
    for at, name in enumerate(program.graph_signature.user_outputs, 1):
        node = by_name.get(name)
        dtype = getattr(node.meta.get("val") if node else None, "dtype", None)
        if dtype != torch.float32:
            told = dtype if dtype is not None else "no tensor"
            raise CannotTraceError(
                f"output {at} is {told}: answers are float32 tensors",
                line_of_node(node, place) if node else 0,
                "return float32 tensors alone: the values that an index points at, or x.float()",
            )


def _draws(node: Any) -> bool:
    """Whether an operation gives something else each time."""
    import torch

    tags = getattr(node.target, "tags", ())
    if torch.Tag.nondeterministic_seeded not in tags:
        return False
    given = dict(_arguments_of(node))
    return not any(given[name] == still for name, still in _STILL.items() if name in given)


def _arguments_of(node: Any) -> Iterator[tuple[str, Any]]:
    """What an operation is given, by the names of its schema, with what it has by itself."""
    for at, argument in enumerate(node.target._schema.arguments):
        if at < len(node.args):
            yield argument.name, node.args[at]
        else:
            yield argument.name, node.kwargs.get(argument.name, argument.default_value)


def _written_by(node: Any) -> Iterator[Any]:
    """The placeholders into which an operation writes, through views of them too."""
    schema = getattr(node.target, "_schema", None)
    if node.op != "call_function" or schema is None:
        return
    for argument, given in zip(schema.arguments, node.args, strict=False):
        if argument.alias_info is None or not argument.alias_info.is_write:
            continue
        while getattr(given, "op", "") == "call_function" and _is_alias(given):
            given = given.args[0]
        if getattr(given, "op", "") == "placeholder":
            yield given


def _is_alias(node: Any) -> bool:
    """Whether what an operation gives is memory of its first argument."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return "getitem" in str(node.target)
    return bool(schema.arguments and schema.arguments[0].alias_info is not None)


def _name_tensor(program: Any, node: Any) -> str:
    """The name of a placeholder in the file."""
    signature = program.graph_signature
    named = {**signature.inputs_to_buffers, **signature.inputs_to_parameters}
    return str(named.get(node.name, node.name))


def _name(node: Any) -> str:
    return str(node.target).removeprefix("aten.").partition(".")[0]


def _line_in(words: str, place: str) -> int:
    """The last line of the file that a traceback in words tells of; 0: none."""
    found = re.findall(rf'File "{re.escape(place)}", line (\d+)', words)
    return int(found[-1]) if found else 0
