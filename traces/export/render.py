# SPDX-License-Identifier: Apache-2.0
"""Fills the templates beside this file. Whatever comes from a bundle is quoted for its language."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...kernelbench.c_types import define_types
from ...kernelbench.dtypes import dtype_of
from ...kernelbench.languages import language_of
from .axes import plan_axes
from .bundle import Bundle
from .code import Code, derivation, extent
from .facts import facts_of, without_paths
from .gradients import find_gradient
from .replaced import find_replaced
from .sparse import find_csr

if TYPE_CHECKING:
    from jinja2 import Environment


def operator_name(bundle: Bundle) -> str:
    """The problem's name as a Python and C identifier."""
    name = re.sub(r"[^a-z0-9_]+", "_", bundle.problem.lower()).strip("_")[:40]
    return name if name[:1].isalpha() else f"op_{name}".rstrip("_")


def module_name(bundle: Bundle) -> str:
    """`kw_spmm_csr_1a2b3c4d`."""
    return f"kw_{operator_name(bundle)}_{bundle.short}"


def signature(bundle: Bundle) -> str:
    """The entry point's C declaration; before it that of what makes its plan, if it makes one."""
    axes = [f"int {axis}" for axis in bundle.axes]
    inputs = [f"const {dtype_of(t.dtype).c}* {t.name}" for t in bundle.inputs]
    outputs = [f"{dtype_of(t.dtype).c}* {t.name}" for t in bundle.outputs]
    if not bundle.is_prepared:
        return _declare(bundle.entry, axes + inputs + outputs)
    indices = [name for name, t in zip(inputs, bundle.inputs, strict=True) if t.is_index]
    prepare = _declare(f"{bundle.entry}_prepare", [*axes, *indices, "void* plan"])
    entry = _declare(bundle.entry, [*axes, *inputs, *outputs, "const void* plan"])
    return f"{prepare}\n{entry}"


def whole_source(bundle: Bundle) -> str:
    """The candidate, behind the types that stood before it as it was compiled."""
    if not language_of(bundle.language).is_native:
        return bundle.source
    return define_types(signature(bundle)) + bundle.source


def _declare(name: str, parameters: list[str]) -> str:
    return f'extern "C" void {name}({", ".join(parameters)});'


def render(template: str, bundle: Bundle, **more: object) -> str:
    """The text of one template for this bundle."""
    plan = plan_axes(bundle)
    operator = operator_name(bundle)
    known: dict[str, object] = {"launcher": "_build", "is_hub": False}
    second = bundle.backward
    known["backward_module"] = module_name(second) if second else ""
    known["backward_operator"] = operator_name(second) if second else ""
    language = language_of(bundle.language)
    return (
        _environment()
        .get_template(template)
        .render(
            bundle=bundle,
            facts=facts_of(bundle),
            code=Code(bundle, operator),
            operator=operator,
            module=module_name(bundle),
            distribution=module_name(bundle).replace("_", "-"),
            derived=plan.derived,
            keywords=plan.keywords,
            axis_names=tuple(bundle.axes),
            input_names=tuple(t.name for t in bundle.inputs),
            output_names=tuple(t.name for t in bundle.outputs),
            signature=signature(bundle),
            replaced=find_replaced(bundle),
            csr=find_csr(bundle),
            gradient=find_gradient(bundle),
            is_for_gpu=language.is_for_gpu,
            suffix=language.suffix,
            **(known | more),
        )
    )


def _label(shape: tuple[str, ...]) -> str:
    return f"[{', '.join(shape)}]"


def _double_quoted(text: str) -> str:
    # JSON's escapes are a subset of Python's and TOML's.
    return json.dumps(text)


def _quoted_tuple(names: Sequence[str]) -> str:
    return f"({', '.join(map(_double_quoted, names))}{',' if len(names) == 1 else ''})"


def _docstring(text: str) -> str:
    kept = without_paths(" ".join(text.split()))
    return kept.replace("\\", "\\\\").replace('"""', "'''")


def _plain_text(text: str) -> str:
    return without_paths(" ".join(text.split())).replace("`", "'").replace("<", "&lt;")


def _cell(text: str) -> str:
    return _plain_text(text).replace("|", "\\|")


def _block(text: str) -> str:
    return "\n".join(f"    {line}" for line in without_paths(text).splitlines())


@functools.cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    filters: dict[str, Any] = {
        "dq": _double_quoted,
        "doc": _docstring,
        "plain": _plain_text,
        "cell": _cell,
        "block": _block,
        "label": _label,
        "extent": extent,
        "derivation": derivation,
        "quoted": _quoted_tuple,
    }
    environment.filters.update(filters)
    return environment
