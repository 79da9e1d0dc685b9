# SPDX-License-Identifier: Apache-2.0
"""What an export needs beside a candidate's own text: host code for its launches, its module."""

from __future__ import annotations

import ast

from ..kernelbench import registry
from ..kernelbench.languages import CUDA, TRITON
from ..kernelbench.module import MODEL
from ..kernelbench.problem import Problem
from ..sandbox.plan import Plan, host_python, host_text, parse
from ..syntax import parse_python
from ..traces.export import HostCode, ModuleText


def write_host_code(language: str, source: str, problem: str) -> HostCode | None:
    """The plan of a candidate as host code; None where it has none, or none that can be read."""
    if language not in (CUDA.name, TRITON.name):
        return None
    plan = parse(source, language)
    if not isinstance(plan, Plan) or not plan.launches:
        return None
    known = registry.get(problem)
    return _of_cuda(plan, known) if language == CUDA.name else _of_triton(plan, known)


def _of_cuda(plan: Plan, problem: Problem) -> HostCode:
    text = host_text.write_host_text(plan, problem)
    return HostCode(host_text.HELPERS, text.functions, text.declarations, text.features)


def _of_triton(plan: Plan, problem: Problem) -> HostCode:
    helpers = f"{host_python.IMPORTS}\n\n{host_python.HELPERS}\n"
    functions = host_python.write_host_python(plan, problem)
    return HostCode(helpers, functions, features=host_python.features_of(plan))


def find_module(problem: str) -> ModuleText | None:
    """The PyTorch module that the problem's file was made of (sandbox/definitions/module_text.py).

    None where it was made of none, or of a function.
    """
    text = registry.get(problem).text
    if "TracedModule" not in text:
        return None
    assigned = {
        node.targets[0].id: node.value
        for node in parse_python(text).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    source, call = assigned.get("SOURCE"), assigned.get("module")
    if source is None or not isinstance(call, ast.Call) or len(call.args) < 3:
        return None
    written = str(ast.literal_eval(source))
    classes = {each.name for each in parse_python(written).body if isinstance(each, ast.ClassDef)}
    if MODEL not in classes:
        return None
    return ModuleText(written, dict(ast.literal_eval(call.args[2])))
