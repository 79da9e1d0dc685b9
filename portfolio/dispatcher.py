# SPDX-License-Identifier: Apache-2.0
"""Several kernels and the tree between them as one C++ source, which is a candidate like any other.

The referee judges it, a store keeps it, and it is exported as what it is: one file with the
problem's entry point. Each kernel stands in a namespace of its own, under a name of its own, and
what it defines for the preprocessor ends with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from ..errors import UsageError
from ..kernelbench.languages import CPP
from ..kernelbench.problem import Problem, c_parameters
from ..kernelbench.skeleton import signature
from ..sandbox.front_matter import MalformedError, read_comment
from ..sandbox.plan.pattern_plan import declares_pattern_plan
from .declared import Feature
from .tree import Leaf, Node, list_leaves, tell_tree

_TABLE = "portfolio"
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*(<[^>\n]+>)", re.M)
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w*)", re.M)
_OPTIONS = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+GCC[ \t]+(?:optimize|target)\b", re.M)


def write_dispatcher(
    problem: Problem, tree: Node, features: Sequence[Feature], sources: Mapping[str, str]
) -> str:
    """The source: every kernel of the tree once, and the entry point that chooses between them.

    Args:
        features: All that the tree asks for; each has to be had without a pass over the data.
        sources: C++ by candidate; those of the tree at least.

    Raises:
        UsageError: a kernel makes a plan ahead of its calls, or a feature takes a pass.
    """
    names = list(dict.fromkeys(leaf.candidate for leaf in list_leaves(tree)))
    for name in names:
        if declares_pattern_plan(sources[name]):
            raise UsageError(
                f"{name} makes a plan of its pattern before it is called, which a dispatcher has "
                "no place for",
                hint="leave it out, or make it a kernel without [prepare]",
            )
    kernels = {name: f"{problem.name}_kernel_{at}" for at, name in enumerate(names, 1)}
    headers = dict.fromkeys(header for name in names for header in _INCLUDE.findall(sources[name]))
    head = CPP.syntax.head(
        f"[{_TABLE}]\nkernels = {json.dumps(list(kernels.values()))}\n"
        f"made_of = {json.dumps(names)}\n",
        [
            f"{len(names)} kernels for {problem.name}, and which of them is called:",
            *(f"  {line}" for line in tell_tree(tree)),
        ],
    )
    included = [f"#if __has_include({h})\n#include {h}\n#endif" for h in headers]
    bodies = [_enclose(problem, kernels[name], name, sources[name]) for name in names]
    arguments = ", ".join(each.rpartition(" ")[2] for each in c_parameters(problem))
    calls = {name: f"in_{kernel}::{kernel}({arguments});" for name, kernel in kernels.items()}
    asked = {each.name: each for each in features}
    entry = signature(problem).removesuffix(";")
    chosen = "\n".join(_choose(tree, asked, calls, "    "))
    return "\n".join([head.rstrip("\n"), *included, *bodies, f"{entry} {{\n{chosen}\n}}", ""])


def list_kernels(source: str) -> tuple[str, ...]:
    """The symbols of the kernels that a C++ source says it chooses between; none where it has none.

    Raises:
        UsageError: what it says of them is no list of names.
    """
    try:
        told = read_comment(source).facts.get(_TABLE, {})
    except MalformedError:
        # Front matter is optional in C++: what cannot be read declares nothing.
        return ()
    kernels = told.get("kernels", []) if isinstance(told, dict) else None
    if not isinstance(kernels, list) or not all(isinstance(each, str) for each in kernels):
        raise UsageError(f"[{_TABLE}] of the source: kernels is no list of names")
    return tuple(kernels)


def _enclose(problem: Problem, kernel: str, name: str, source: str) -> str:
    """A kernel under its own name; headers that it includes again are empty by then."""
    macros = list(dict.fromkeys([*_DEFINE.findall(source), problem.name]))
    has_options = bool(_OPTIONS.search(source))
    return "\n".join(
        [
            f"// {kernel}: {name}",
            *(f'#pragma push_macro("{macro}")\n#undef {macro}' for macro in macros),
            *(["#pragma GCC push_options"] if has_options else []),
            f"#define {problem.name} {kernel}",
            f"namespace in_{kernel} {{",
            source.rstrip("\n"),
            f"}}  // namespace in_{kernel}",
            *(["#pragma GCC pop_options"] if has_options else []),
            *(f'#undef {macro}\n#pragma pop_macro("{macro}")' for macro in macros),
        ]
    )


def _choose(
    tree: Node, asked: Mapping[str, Feature], calls: Mapping[str, str], indent: str
) -> list[str]:
    if isinstance(tree, Leaf):
        return [indent + calls[tree.candidate]]
    feature = asked[tree.feature]
    if not feature.is_free:
        raise UsageError(
            f"a dispatcher cannot ask for {feature.name}: it takes a pass over the rows",
            hint="learn from features that the axes give",
        )
    return [
        f"{indent}if ({feature.cpp} <= {tree.threshold!r}) {{",
        *_choose(tree.low, asked, calls, indent + "    "),
        f"{indent}}} else {{",
        *_choose(tree.high, asked, calls, indent + "    "),
        f"{indent}}}",
    ]
