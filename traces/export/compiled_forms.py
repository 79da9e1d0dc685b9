# SPDX-License-Identifier: Apache-2.0
"""Exports for programs that compile: a header, a shared object with a C ABI, KernelBench's file.

A CUDA candidate's launches are made by the host code that its plan was written out as
(`Bundle.host`); a C++ candidate is called by its entry point.
"""

from __future__ import annotations

from ...errors import UsageError
from ...kernelbench.dtypes import dtype_of
from ...kernelbench.languages import CUDA, language_of
from .bundle import Bundle
from .render import operator_name, render, signature, whole_source

Texts = dict[str, str]
"""Relative path → text."""

_FEATURES = {
    "avg_row": "float(lengths.mean()) if M else 0.0",
    "max_row": "float(lengths.max()) if M else 0.0",
    "cv_row": "float(lengths.std(correction=0) / lengths.mean()) if nnz else 0.0",
    "empty_share": "float((lengths == 0).double().mean()) if M else 0.0",
    "density": "nnz / (M * K) if M * K else 0.0",
}
"""As kernelbench/features.py has them, of torch tensors; `lengths` are the rows' entries."""
_INCLUDES = {CUDA.name: "#include <cuda_runtime.h>\n#include <cstdint>\n"}


def header_texts(bundle: Bundle) -> Texts:
    """One header with the kernel and, of CUDA, the function that launches it."""
    check_compiled(bundle, "header")
    name = operator_name(bundle)
    if bundle.host is None:
        usage = (
            f"`{name}.hpp` defines the kernel; include it in one file that is compiled with "
            f"`{' '.join(bundle.flags)}`:\n\n```c\n{signature(bundle)}\n```"
        )
        return {f"{name}.hpp": f"#pragma once\n{whole_source(bundle)}", "README.md": usage}
    usage = (
        f"`{name}.cuh` defines the kernels, the table of their launches and the function that "
        "makes them; include it in one file that nvcc compiles (C++17). Pointers are to device "
        "memory; "
        "`scratch` has as many bytes there as the second function says; 0 is success, anything "
        f"else a cudaError_t.\n\n```c\n{bundle.host.declarations}```"
    )
    text = f"#pragma once\n{write_cuda(bundle)}".replace('\nextern "C" int', "\nstatic inline int")
    text = text.replace('\nextern "C" long long', "\nstatic inline long long")
    return {f"{name}.cuh": text, "README.md": usage}


def aot_texts(bundle: Bundle) -> Texts:
    """Sources and a Makefile of a shared object with a C ABI."""
    check_compiled(bundle, "aot")
    name = operator_name(bundle)
    is_cuda = bundle.host is not None
    declared = bundle.host.declarations if bundle.host else signature(bundle)[len('extern "C" ') :]
    guard = f"KERNELWRIGHT_{name.upper()}_H"
    header = (
        f"#ifndef {guard}\n#define {guard}\n#ifdef __cplusplus\n"
        f'extern "C" {{\n#endif\n{declared.strip()}\n#ifdef __cplusplus\n}}\n#endif\n#endif\n'
    )
    source = f"{name}.cu" if is_cuda else f"{name}.cpp"
    build = (
        "nvcc -std=c++17 -O3 -arch=$(ARCH) -shared -Xcompiler -fPIC -cudart static $< -o $@"
        if is_cuda
        else f"g++ {' '.join(bundle.flags)} $< -o $@"
    )
    arch = f"ARCH ?= {bundle.verdict.target}\n\n" if is_cuda else ""
    makefile = f"{arch}lib{name}.so: {source}\n\t{build}\n\nclean:\n\trm -f lib{name}.so\n"
    usage = (
        f"`make` builds `lib{name}.so`, which any language that calls C can load; `{name}.h` "
        f"declares it:\n\n```c\n{declared.strip()}\n```"
        + (
            "\n\nPointers are to device memory; `scratch` has as many bytes there as the first "
            "function says, `stream` is a cudaStream_t; 0 is success, else a cudaError_t. "
            "`make ARCH=sm_90` names the architecture."
            if is_cuda
            else ""
        )
    )
    text = write_cuda(bundle) if is_cuda else whole_source(bundle)
    return {source: text, f"{name}.h": header, "Makefile": makefile, "README.md": usage}


def modelnew_texts(bundle: Bundle) -> Texts:
    """`class ModelNew` in one file, as KernelBench takes it."""
    language = language_of(bundle.language)
    is_python = bundle.language not in (CUDA.name,) and not language.is_native
    if not is_python:
        check_compiled(bundle, "modelnew")
    given = [
        t for t in bundle.inputs if not bundle.module or t.name not in bundle.module.parameters
    ]
    kernel = "" if is_python else _python_text(_binding(bundle))
    text = render(
        "modelnew.py.j2",
        bundle,
        is_python=is_python,
        has_own_model=is_python and "class ModelNew" in bundle.source,
        kernel=kernel,
        given=given,
        parameters=sorted(bundle.module.parameters.items()) if bundle.module else [],
        features=list_features(bundle),
    )
    name = f"{operator_name(bundle)}.py"
    takes = ", ".join(t.name for t in given)
    usage = (
        f"`{name}` defines `class ModelNew`, whose `forward({takes})` "
        "returns the outputs; it stands in for the `Model` of a file in KernelBench's form."
        + (" Its constructor and parameters are those of that Model." if bundle.module else "")
    )
    return {name: text, "README.md": usage}


def check_compiled(bundle: Bundle, form: str) -> None:
    """Raises UsageError where there is nothing that such a program could call."""
    short, named = bundle.candidate[:12], f"{'an' if form == 'aot' else 'a'} {form}"
    if bundle.is_prepared:
        raise UsageError(
            f"candidate {short} makes a plan of its pattern before it is called, which {named} "
            "has no place for",
            hint="--format source gives its file with both functions, and its record",
        )
    is_launched = bundle.language == CUDA.name and bundle.host is not None
    if not (language_of(bundle.language).is_native or is_launched):
        lacking = "has no launch plan that could be written out" * (bundle.language == CUDA.name)
        raise UsageError(
            f"candidate {short} is written in {bundle.language} and "
            f"{lacking or 'cannot be compiled'} for {named}",
            hint="--format source gives its file, its plan and its record; --format modelnew a "
            "class of Python and Triton candidates",
        )


def write_cuda(bundle: Bundle) -> str:
    """The kernels, and behind them the functions that launch them."""
    assert bundle.host is not None
    parts = (_INCLUDES[CUDA.name], bundle.source, bundle.host.helpers, bundle.host.functions)
    return "\n".join(parts)


def _binding(bundle: Bundle) -> str:
    """The kernel with a function that takes torch's tensors."""
    return render(
        "modelnew_kernel.cpp.j2", bundle, source=whole_source(bundle), **write_arguments(bundle)
    )


def list_features(bundle: Bundle) -> list[tuple[str, str]]:
    """What the host code takes of a sparse pattern: names, and Python expressions of torch's."""
    names = bundle.host.features if bundle.host else ()
    return [(name, _FEATURES[name]) for name in names]


def write_arguments(bundle: Bundle) -> dict[str, str]:
    """What C++ passes of `sizes`, `features` and `tensors` to the kernel or its host code."""
    host, counted = bundle.host, len(bundle.inputs)
    whole = "{}" if host else "int({})"
    sizes = [whole.format(f"sizes[{at}]") for at in range(len(bundle.axes))]
    sizes += [f"features[{at}]" for at in range(len(host.features) if host else 0)]
    pointers = [
        f"tensors[{at}].data_ptr()"
        if host
        else f"static_cast<{'const ' if at < counted else ''}{dtype_of(t.dtype).c}*>"
        f"(tensors[{at}].data_ptr())"
        for at, t in enumerate(bundle.tensors)
    ]
    return {"sizes": ", ".join(sizes), "pointers": ",\n      ".join(pointers)}


def _python_text(text: str) -> str:
    """A literal of Python, as readable as its content allows."""
    if "'''" in text or text.rstrip().endswith("\\") or "\r" in text:
        return repr(text)
    return f"r'''\n{text}'''"
