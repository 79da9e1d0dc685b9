# SPDX-License-Identifier: Apache-2.0
"""A data set of flashinfer-bench: Definition, Solution, Workload and Trace as JSON.

Format: `flashinfer_bench/data/*.py` of flashinfer-ai/flashinfer-bench, 0.1.2. A Trace says PASSED
with an error and two times, or a failure with neither: what was only emulated or screened has no
Trace. The referee's errors are scaled by condition and are neither absolute nor relative ones, so
these two are NaN, which the format has for what is not known.
"""

from __future__ import annotations

import datetime
import json
import re
import struct
import uuid
from collections.abc import Mapping, Sequence

import numpy as np
from pydantic import JsonValue

from ...errors import UsageError
from ...kernelbench.languages import CUDA, language_of
from ..records import Measurement, Status
from .axes import parse_term, plan_axes
from .bundle import Bundle, TensorSpec, WorkloadInputs
from .compiled_forms import Texts, check_compiled, list_features, write_arguments
from .facts import facts_of, without_paths
from .hub_form import choose_call, list_parameters, write_kernel
from .render import module_name, operator_name, render, whole_source

DTYPES = frozenset(
    (
        *("float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"),
        *("int64", "int32", "int16", "int8", "bool"),
    )
)
PATTERN_BYTES = 64 << 20
"""A larger pattern is left out, with the workload that needs it."""
_FAILURES = {
    Status.BUILD_FAILED: "COMPILE_ERROR",
    Status.CRASHED: "RUNTIME_ERROR",
    Status.TIMED_OUT: "TIMEOUT",
    Status.INCORRECT: "INCORRECT_NUMERICAL",
}
_FEATURES = {
    "avg_row": "M ? lengths.mean().item<double>() : 0.0",
    "max_row": "M ? lengths.max().item<double>() : 0.0",
    "cv_row": "nnz ? (lengths.std(false) / lengths.mean()).item<double>() : 0.0",
    "empty_share": "M ? (lengths == 0).to(torch::kDouble).mean().item<double>() : 0.0",
    "density": "M && K ? double(nnz) / (double(M) * double(K)) : 0.0",
}
"""As kernelbench/features.py has them, of torch's tensors in C++."""


def flashinfer_texts(bundle: Bundle) -> Texts:
    """The files of the data set, without the pattern; the solution is the first."""
    _check(bundle)
    name, workload, trace = operator_name(bundle), _workload(bundle), _trace(bundle)
    texts = {
        f"solutions/{name}/{module_name(bundle)}.json": _json(_solution(bundle)),
        f"definitions/{name}.json": _json(_definition(bundle)),
    }
    if workload is not None:
        row = {"definition": name, "workload": workload, "solution": None, "evaluation": None}
        texts[f"workloads/{name}.jsonl"] = json.dumps(row) + "\n"
    if trace is not None:
        texts[f"traces/{name}.jsonl"] = json.dumps(trace) + "\n"
    usage = render(
        "flashinfer_usage.md.j2",
        bundle,
        has_workload=workload is not None,
        has_trace=trace is not None,
    )
    return texts | {"README.md": usage}


def write_pattern(bundle: Bundle) -> dict[str, bytes]:
    """The workload's index arrays as a safetensors file; nothing where there are none."""
    workload = _find_carried(bundle)
    if workload is None or not workload.arrays:
        return {}
    return {_pattern_path(bundle): encode_safetensors(workload.arrays, bundle.caveat)}


def encode_safetensors(arrays: Mapping[str, np.ndarray], caveat: str = "") -> bytes:
    """The bytes of a safetensors file: the header's length, the header, the arrays."""
    header: dict[str, JsonValue] = {"__metadata__": {"caveat": caveat}} if caveat else {}
    at, parts = 0, []
    kinds = {"int32": "I32", "int64": "I64"}
    for name, array in arrays.items():
        content = np.ascontiguousarray(array).tobytes()
        shape: list[JsonValue] = [int(extent) for extent in array.shape]
        header[name] = {
            "dtype": kinds[array.dtype.name],
            "shape": shape,
            "data_offsets": [at, at + len(content)],
        }
        at += len(content)
        parts.append(content)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(parts)


def _check(bundle: Bundle) -> None:
    short = bundle.candidate[:12]
    unknown = sorted({t.dtype for t in bundle.tensors} - DTYPES)
    if unknown:
        raise UsageError(
            f"candidate {short} has tensors of {unknown[0]}, which flashinfer-bench does not know",
            hint="--format source gives its file, its plan and its record",
        )
    if not bundle.reference:
        raise UsageError(
            f"{bundle.problem} has no naive code in Python, which flashinfer-bench needs as the "
            "reference of a definition",
            hint="--format source gives the kernel's file, its plan and its record",
        )
    if language_of(bundle.language).is_native or bundle.language == CUDA.name:
        check_compiled(bundle, "flashinfer-bench solution")
    else:
        choose_call(bundle, "flashinfer-bench solution")


def _axis(term: str) -> str:
    """The name of an extent: an axis stays as it is, a formula becomes a word."""
    return re.sub(r"\W+", "_", term.replace("+", "_plus_").replace("*", "_times_"))


def _axes(bundle: Bundle) -> dict[str, JsonValue]:
    axes: dict[str, JsonValue] = {}
    for term in (term for tensor in bundle.tensors for term in tensor.shape):
        parsed = parse_term(term)
        if parsed.axes:
            meaning = without_paths(bundle.axes.get(term, term))
            axes[_axis(term)] = {"type": "var", "description": meaning}
        else:
            axes[f"const_{parsed.constant}"] = {"type": "const", "value": parsed.constant}
    return axes


def _shape(shape: Sequence[str]) -> list[JsonValue]:
    parsed = [(term, parse_term(term)) for term in shape]
    return [_axis(term) if found.axes else f"const_{found.constant}" for term, found in parsed]


def _constraints(bundle: Bundle) -> list[JsonValue]:
    terms = {term for tensor in bundle.tensors for term in tensor.shape}
    formulas = sorted(term for term in terms if parse_term(term).axes and term not in bundle.axes)
    return [f"{_axis(term)} == {term}" for term in formulas]


def _definition(bundle: Bundle) -> dict[str, JsonValue]:
    def specs(tensors: Sequence[TensorSpec]) -> dict[str, JsonValue]:
        return {
            t.name: {
                "shape": _shape(t.shape),
                "dtype": t.dtype,
                "description": without_paths(t.meaning) or None,
            }
            for t in tensors
        }

    scalars: dict[str, JsonValue] = {
        axis: {"shape": None, "dtype": "int32", "description": without_paths(bundle.axes[axis])}
        for axis in plan_axes(bundle).keywords
    }
    return {
        "name": operator_name(bundle),
        "op_type": operator_name(bundle),
        "description": without_paths(f"{bundle.title}: {bundle.definition}"),
        "axes": _axes(bundle),
        "inputs": specs(bundle.inputs) | scalars,
        "outputs": specs(bundle.outputs),
        "constraints": _constraints(bundle),
        "reference": _reference(bundle),
    }


def _reference(bundle: Bundle) -> str:
    given = list_parameters(bundle, bundle.reference)
    text = re.sub(r"^def run\(", "def _fill(", bundle.reference, flags=re.MULTILINE)
    return render("flashinfer_reference.py.j2", bundle, text=text, given=given)


def _solution(bundle: Bundle) -> dict[str, JsonValue]:
    language = language_of(bundle.language)
    is_built = language.is_native or bundle.language == CUDA.name
    source = _compiled_source(bundle) if is_built else _python_source(bundle)
    file = f"kernel{language.suffix}"
    sign = language.syntax.value
    marked = f"{sign} {bundle.caveat}\n{source}" if bundle.caveat else source
    said = f"{bundle.verdict.status} for {bundle.verdict.target} in campaign {bundle.campaign}"
    return {
        "name": module_name(bundle),
        "definition": operator_name(bundle),
        "author": "kernelwright",
        "description": without_paths(bundle.caveat or said),
        "spec": {
            "language": bundle.language,
            "target_hardware": ["cuda" if language.is_for_gpu else "cpu"],
            "entry_point": f"{file}::kernelwright_entry",
            "dependencies": [],
            "destination_passing_style": True,
            "binding": "torch" if is_built else None,
        },
        "sources": [{"path": file, "content": marked}],
    }


def _python_source(bundle: Bundle) -> str:
    way = choose_call(bundle, "flashinfer-bench solution")
    given = list_parameters(bundle, bundle.source) if way == "run" else ()
    return render(
        "flashinfer_entry.py.j2",
        bundle,
        kernel=write_kernel(bundle),
        given=given,
        way=way,
        features=list_features(bundle),
    )


def _compiled_source(bundle: Bundle) -> str:
    names = [name for name, _ in list_features(bundle)]
    kernel = render(
        "modelnew_kernel.cpp.j2", bundle, source=whole_source(bundle), **write_arguments(bundle)
    )
    features = [_FEATURES[name] for name in names]
    return render("flashinfer_entry.cpp.j2", bundle, kernel=kernel, features=features)


def _find_carried(bundle: Bundle) -> WorkloadInputs | None:
    workload = bundle.workload
    if workload is None or sum(a.nbytes for a in workload.arrays.values()) > PATTERN_BYTES:
        return None
    return workload


def _pattern_path(bundle: Bundle) -> str:
    return f"blob/workloads/{operator_name(bundle)}/pattern.safetensors"


def _workload(bundle: Bundle) -> dict[str, JsonValue] | None:
    workload = _find_carried(bundle)
    if workload is None:
        return None
    sizes: dict[str, int] = {}
    for term in {term for tensor in bundle.tensors for term in tensor.shape}:
        parsed = parse_term(term)
        if parsed.axes:
            sizes[_axis(term)] = parsed.constant + sum(workload.axes[a] for a in parsed.axes)
    inputs: dict[str, JsonValue] = {}
    for tensor in bundle.inputs:
        inputs[tensor.name] = {"type": "random"}
        if tensor.name in workload.arrays:
            place = {"path": _pattern_path(bundle), "tensor_key": tensor.name}
            inputs[tensor.name] = {"type": "safetensors", **place}
    for axis in plan_axes(bundle).keywords:
        inputs[axis] = {"type": "scalar", "value": workload.axes[axis]}
    named = f"{bundle.problem}/{workload.name}/{json.dumps(sizes, sort_keys=True)}"
    identity = str(uuid.uuid5(uuid.NAMESPACE_URL, named))
    axes: dict[str, JsonValue] = {name: sizes[name] for name in sorted(sizes)}
    return {"axes": axes, "inputs": inputs, "uuid": identity}


def _trace(bundle: Bundle) -> dict[str, JsonValue] | None:
    verdict, workload = bundle.verdict, _workload(bundle)
    if workload is None or verdict.emulated or bundle.workload is None:
        return None
    measured = next((m for m in verdict.measurements if m.workload == bundle.workload.name), None)
    is_passed = verdict.status is Status.VERIFIED and measured and measured.best_baseline
    status = "PASSED" if is_passed else _FAILURES.get(verdict.status, "")
    if not status or bundle.verified_at is None:
        return None
    facts = facts_of(bundle)
    found: dict[str, JsonValue] = {
        "status": status,
        "environment": {"hardware": facts.machine, "libs": dict(facts.versions)},
        "timestamp": datetime.datetime.fromtimestamp(bundle.verified_at, datetime.UTC).isoformat(),
        "log": "; ".join(facts.speedup_lines if is_passed else facts.reasons),
        "correctness": _correctness(bundle)
        if status in ("PASSED", "INCORRECT_NUMERICAL")
        else None,
        "performance": _performance(measured) if is_passed and measured else None,
    }
    return {
        "definition": operator_name(bundle),
        "workload": workload,
        "solution": module_name(bundle),
        "evaluation": found,
    }


def _correctness(bundle: Bundle) -> dict[str, JsonValue]:
    checks: dict[str, JsonValue] = {
        row.name: {"worst": row.figure, "limit": row.limit, "passed": row.passed}
        for row in facts_of(bundle).checks
    }
    return {"max_relative_error": "NaN", "max_absolute_error": "NaN", "extra": checks}


def _performance(measured: Measurement) -> dict[str, JsonValue]:
    best = measured.best_baseline
    return {
        "latency_ms": measured.candidate.median_us / 1000,
        "reference_latency_ms": measured.baselines[best].median_us / 1000,
        "speedup_factor": measured.speedup[best].median,
    }


def _json(value: Mapping[str, JsonValue]) -> str:
    return json.dumps(value, indent=2) + "\n"
