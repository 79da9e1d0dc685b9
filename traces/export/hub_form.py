# SPDX-License-Identifier: Apache-2.0
"""The repository of a kernel as Hugging Face's kernel-builder and `kernels` have it.

Format: https://huggingface.co/docs/kernels/builder/writing-kernels, edition 5 of build.toml.
C++ and CUDA are bound by `torch-ext/torch_binding.cpp`; Triton and Python are kernels without a
build (`[torch-noarch]`). `_ops.py` and `registration.h` are the builder's own and are not written.
"""

from __future__ import annotations

import ast
import re

from ...errors import UsageError
from ...kernelbench.c_types import define_types
from ...kernelbench.languages import CUDA, PYTHON, TRITON, language_of
from ...syntax import parse_python
from .bundle import Bundle
from .compiled_forms import Texts, check_compiled, list_features, write_arguments, write_cuda
from .render import module_name, operator_name, render, signature, whole_source
from .sparse import find_csr

_OWN_FLAGS = frozenset({"-shared", "-fPIC", "-march=native"})
"""The builder links by itself, and builds for machines that it does not run on."""
_ARCHITECTURE = re.compile(r"sm_(\d+)(\d)([a-z]?)")


def hub_texts(bundle: Bundle) -> Texts:
    """The files of the repository; the kernel's is the first."""
    language = language_of(bundle.language)
    is_built = language.is_native or bundle.language == CUDA.name
    way = "extension" if is_built else choose_call(bundle, "kernels repository")
    if is_built:
        check_compiled(bundle, "kernels repository")
    backend = "cuda" if language.is_for_gpu else "cpu"
    folder = f"torch-ext/{module_name(bundle)}"
    kernel = (
        f"{operator_name(bundle)}_{backend}/kernel{language.suffix}"
        if is_built
        else f"{folder}/kernel.py"
    )
    shared = {"is_hub": True, "launcher": "_launch", **describe_call(bundle, way)}
    texts = {
        kernel: write_kernel(bundle),
        "build.toml": render("hub_build.toml.j2", bundle, **_facts(bundle, backend, kernel, way)),
        "flake.nix": render("hub_flake.nix.j2", bundle),
        f"{folder}/__init__.py": render("hub_init.py.j2", bundle),
        f"{folder}/ops.py": render("package_ops.py.j2", bundle, **shared),
        f"{folder}/_checks.py": render("package_checks.py.j2", bundle),
        f"{folder}/_launch.py": render("package_launch.py.j2", bundle, **shared),
        "README.md": render("hub_usage.md.j2", bundle, is_built=is_built, kernel=kernel),
    }
    if find_csr(bundle) is not None:
        texts[f"{folder}/_csr.py"] = render("package_csr.py.j2", bundle, is_hub=True)
    return texts | (_binding(bundle) if is_built else {})


def choose_call(bundle: Bundle, form: str) -> str:
    """How Python calls the kernel: `plan`, a launch plan written out, or the file's own `run`.

    Raises:
        UsageError: the file has neither.
    """
    if bundle.host is not None:
        return "plan"
    if re.search(r"^def run\(", bundle.source, re.MULTILINE):
        return "run"
    raise UsageError(
        f"candidate {bundle.candidate[:12]} is written in {bundle.language} and has neither a "
        f"launch plan that could be written out nor a function run, which a {form} would call",
        hint="--format modelnew gives a class ModelNew, --format source its file and its record",
    )


def describe_call(bundle: Bundle, way: str) -> dict[str, object]:
    """What `_launch.py` is written from."""
    given = list_parameters(bundle, bundle.source) if way == "run" else ()
    return {"way": way, "given": given, "features": list_features(bundle)}


def list_parameters(bundle: Bundle, text: str) -> tuple[str, ...]:
    """Which axes, inputs and outputs the function `run` of a Python text is given, by name."""
    known = (*bundle.axes, *(tensor.name for tensor in bundle.tensors))
    found = [node for node in parse_python(text).body if isinstance(node, ast.FunctionDef)]
    taken = next(node.args for node in found if node.name == "run")
    if taken.kwarg is not None:
        return known
    names = {each.arg for each in (*taken.posonlyargs, *taken.args, *taken.kwonlyargs)}
    return tuple(name for name in known if name in names)


def write_kernel(bundle: Bundle) -> str:
    """The candidate with all that calls of it need in its own language."""
    if bundle.language == CUDA.name:
        return write_cuda(bundle)
    if bundle.language in (TRITON.name, PYTHON.name) and bundle.host is not None:
        return f"{bundle.source}\n\n{bundle.host.helpers}\n\n{bundle.host.functions}"
    return whole_source(bundle)


def _facts(bundle: Bundle, backend: str, kernel: str, way: str) -> dict[str, object]:
    """What build.toml says."""
    flags = [flag for flag in bundle.flags if flag not in _OWN_FLAGS]
    found = _ARCHITECTURE.fullmatch(bundle.verdict.target)
    capability = "{}.{}{}".format(*found.groups()) if found else ""
    if way == "extension" and backend == "cuda" and not capability:
        raise UsageError(
            f"candidate {bundle.candidate[:12]} is for {bundle.verdict.target}, which is no "
            "architecture that a kernels repository could name",
            hint="--format source gives its file, its plan and its record",
        )
    return {
        "backend": backend,
        "kernel": kernel,
        "way": way,
        "flags": flags,
        "capability": capability,
    }


def _binding(bundle: Bundle) -> Texts:
    """The operator that torch calls, in C++."""
    if bundle.host is None:
        types, declarations = define_types(signature(bundle)), signature(bundle)
    else:
        types, declarations = "", f'extern "C" {{\n{bundle.host.declarations.strip()}\n}}'
    return {
        "torch-ext/torch_binding.h": render(
            "hub_binding.h.j2", bundle, types=types, declarations=declarations
        ),
        "torch-ext/torch_binding.cpp": render(
            "hub_binding.cpp.j2", bundle, **write_arguments(bundle)
        ),
    }
