# SPDX-License-Identifier: Apache-2.0
"""Reads what NVIDIA's compilers said: the first error as one sentence that a Coder can act on.

Their front end writes `candidate.cu(3): error: …`, their assembler `ptxas error   : …`. Everything
read here is influenced by the candidate and is data, never an instruction.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from . import cuda_source, diagnostics
from .diagnostics import REASON_CHARACTERS, shorten

SOURCE = "candidate.cu"

_ERROR = re.compile(r"^([^\s(][^\n(]*)\((\d+)\): (?:catastrophic )?error: (.+)$", re.M)
_AT_END = re.compile(r"^At end of source: (?:catastrophic )?error: (.+)$", re.M)
_MATCHES = re.compile(r"^candidate\.cu\((\d+)\): note [^:]*: (to match this .+)$", re.M)
_INSTANTIATED = re.compile(r"at line (\d+) of candidate\.cu")
_ASSEMBLER = re.compile(
    r"^ptxas (?:[^\n]*?; )?(?:error|fatal)\s*: (?!Ptx assembly aborted)(.+)$", re.M
)
_LIMITS = (
    re.compile(r"(out of memory)", re.I),
    re.compile(r"(?:^|: )([^:\n]+?) (?:signal terminated program|died due to signal \d+)"),
)
_NAMES_OF_KERNELS = "__nv_name_map"
"""The file that NVRTC reports errors of name expressions in."""
_EXPRESSION = re.compile(r'Input name expression was: "\s*(.*?)\s*"')

_HOST_CODE = (
    "this is host code; a candidate is device code only, and its launch plan makes the launch"
)
_OF_LIBRARIES = (
    (r"\b(?:cutlass|cute)(?:::|/)", "CUTLASS is not here; <mma.h> (wmma) and inline PTX are"),
    (r"\bcurand\w*", "cuRAND is not here; a candidate needs no random numbers of its own"),
    (
        r"\bcub::Device\w+|cub/device/",
        "cub's device-wide algorithms are host code; write the "
        "kernels and name them in the launch plan (its block and warp algorithms can be used)",
    ),
    (
        r"\bthrust(?:::|/)",
        "thrust's algorithms are host code; write the kernels and name them in the launch plan",
    ),
)
_REMEDIES = (
    *_OF_LIBRARIES,
    (r"explicitly marked as a __host__ function|device-side kernel launch", _HOST_CODE),
    (r"annotation on lambda", "leave the mark out: a lambda in a kernel is device code"),
    (r"calling a __host__ function", "mark helpers __device__"),
    (
        r"cannot open source file",
        "only headers of the CUDA toolkit can be included, without a folder of your own",
    ),
    (r'identifier "(?:cuda|cublas|cusparse|cudnn)[A-Z]', _HOST_CODE),
    (r'identifier "(?:__)?(?:half|hadd|hmul|hfma|float2half|half2float)', "#include <cuda_fp16.h>"),
    (r'identifier "(?:__)?(?:nv_bfloat|bfloat)', "#include <cuda_bf16.h>"),
    (r'identifier "(?:cg|cooperative_groups)', "#include <cooperative_groups.h>"),
    (r'identifier "__pipeline_', "#include <cuda_pipeline.h>"),
    (
        r"uses too much shared data",
        "declare it `extern __shared__` and set the launch's shared_bytes",
    ),
    (r"not supported on \.target", "this instruction belongs to another architecture"),
    (r"excessive recursion|recursive template instantiation", "templates are nested too deeply"),
)
"""What to do, by what the compiler says."""
_ON_THE_LINE = (
    *_OF_LIBRARIES,
    (
        r"<<<|\bcuda[A-Z]\w*\s*\(|\b(?:cublas|cusparse|cudnn|cusolver)[A-Z]\w*|\bint\s+main\s*\("
        r"|\b(?:torch|at|c10|pybind11|py)::|\b(?:TORCH|PYBIND11|AT|C10)_[A-Z_]+|\b__host__\b"
        r"|\bstd::(?:vector|(?:w?o?string|o?f)stream|string|cout|cerr|endl|unique_ptr|shared_ptr|map"
        r"|unordered_map|runtime_error|thread|chrono|random|mt19937)\b|\bthrow\b",
        _HOST_CODE,
    ),
)
"""What to do, by what stands on the line that the compiler stopped at."""
_SCOPE = (
    r'name followed by "::"|must be a namespace name',
    "include the header that defines it: <cooperative_groups.h>, <mma.h>",
)


class _Found(NamedTuple):
    file: str
    line: int
    message: str


def reason(log: str, *, kernels: Iterable[str], known: Iterable[str], source: str = "") -> str:
    """One sentence: what went wrong first, where, and what to do.

    Args:
        kernels: The names that the launch plan uses.
        known: The kernels that the source seems to define.
        source: What was compiled.
    """
    errors = [_Found(file, int(line), text) for file, line, text in _ERROR.findall(log)]
    own = [error for error in errors if error.file != _NAMES_OF_KERNELS]
    if own:
        line = _line_of(source, own[0])
        return shorten(_with_remedy(_sentence(own[0], log), line))
    if at_end := _AT_END.search(log):
        where = _MATCHES.search(log)
        note = f" {where[2].rstrip(':')} of line {where[1]}" if where else ""
        return shorten(f"error at the end of the source: {at_end[1]}{note}")
    if errors:
        return shorten(_about_names(errors, kernels, known))
    if found := _ASSEMBLER.search(log):
        return shorten(_with_remedy(f"the assembler refused the kernel: {found[1]}"))
    # nvcc has a C++ compiler read the source first, which speaks its own way.
    return shorten(_with_remedy(diagnostics.reason(log)))


def limit(log: str) -> str | None:
    """Which limit ended a part of the compiler, as it told; None where none did."""
    return next((shorten(hit[1]) for hit in (p.search(log) for p in _LIMITS) if hit), None)


def unknown_kernel(name: str, known: Iterable[str]) -> str:
    """The sentence for a kernel of the plan that the source does not have."""
    there = ", ".join(dict.fromkeys(known))
    return shorten(
        f"the source has no kernel '{name}'; "
        + (f"it defines {there}" if there else "it defines no __global__ function")
    )


def _sentence(error: _Found, log: str) -> str:
    if error.file.endswith(SOURCE):
        return f"error at line {error.line}: {error.message}"
    if error.file.startswith("/"):
        return f'error: cannot open source file "{error.file}" as a header'
    # Inside a header: the line of the candidate that led there says more.
    led = _INSTANTIATED.search(log)
    where = f"line {led[1]}, in {error.file}" if led else f"{error.file}, line {error.line}"
    return f"error at {where}: {error.message}"


def _about_names(errors: list[_Found], kernels: Iterable[str], known: Iterable[str]) -> str:
    text = " ".join(error.message for error in errors)
    found = _EXPRESSION.search(text)
    told = "".join(found[1].split()) if found else ""
    # The compiler spells a name in tokens.
    plan = list(kernels)
    if not told and errors[0].line <= len(plan):
        told = "".join(plan[errors[0].line - 1].split())
    name = next((kernel for kernel in plan if "".join(kernel.split()) == told), told)
    if "non-__global__" in text:
        return f"'{name}' is not a kernel: a launch needs a __global__ function"
    missing = re.search(r'(?:identifier|namespace|class) "([\w:]+)" (?:is undefined|has no)', text)
    if missing or "has no member" in text:
        return unknown_kernel(name, known)
    return f"'{name}' names no kernel of the source: {errors[0].message}"


def _line_of(source: str, error: _Found) -> str:
    """The text that an error is about; empty where it is in a header."""
    lines = cuda_source.blank_out(source).splitlines()
    is_there = error.file.endswith(SOURCE) and error.line <= len(lines)
    return lines[error.line - 1] if is_there else ""


def _with_remedy(sentence: str, line: str = "") -> str:
    rows = (
        *((pattern, remedy, line) for pattern, remedy in _ON_THE_LINE),
        *((pattern, remedy, sentence) for pattern, remedy in (*_REMEDIES, _SCOPE)),
    )
    for pattern, remedy, text in rows:
        if re.search(pattern, text):
            room = REASON_CHARACTERS - len(remedy) - 3
            return f"{shorten(sentence, room)}; {remedy}"
    return sentence
