# SPDX-License-Identifier: Apache-2.0
"""The files of each form of export. It renders and encodes; writing them is another's work."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Mapping
from pathlib import PurePath

import numpy as np
from pydantic import JsonValue

from ...kernelbench.dtypes import dtype_of
from ...kernelbench.languages import CUDA, Syntax, language_of, languages_of_suffix
from .axes import plan_axes
from .bundle import Bundle
from .check import check_package
from .compiled_forms import Texts, aot_texts, header_texts, list_features, modelnew_texts
from .facts import provenance, record_json, scrub_paths
from .flashinfer_form import flashinfer_texts, write_pattern
from .gradients import check_backward, find_gradient
from .hub_form import choose_call, describe_call, hub_texts, write_kernel
from .render import module_name, operator_name, render, signature, whole_source
from .replaced import find_replaced
from .sparse import find_csr

Files = dict[str, bytes]
"""Relative path → content."""

_HEADERS = (".h", ".hpp", ".cuh")

PREBUILT = "prebuilt.so"
"""In a package of CUDA: the kernel as it was compiled when it was exported."""

_PACKAGE_MODULES = {
    "__init__.py": "package_init.py.j2",
    "__main__.py": "package_main.py.j2",
    "_build.py": "package_build.py.j2",
    "_checks.py": "package_checks.py.j2",
    "_facts.py": "package_facts.py.j2",
    "benchmark.py": "package_benchmark.py.j2",
    "ops.py": "package_ops.py.j2",
    "selftest.py": "package_selftest.py.j2",
}


def source_files(bundle: Bundle) -> Files:
    """The kernel, its plan, its record and a README; each says where it was not verified."""
    kernel = operator_name(bundle) + language_of(bundle.language).suffix
    files = {
        kernel: whole_source(bundle).encode(),
        "plan.json": _json(_plan(bundle)),
        "README.md": render("source_readme.md.j2", bundle, file=kernel).encode(),
        **_evidence(bundle, kernel),
    }
    return {name: mark_caveat(name, content, bundle.caveat) for name, content in files.items()}


def mark_caveat(name: str, content: bytes, caveat: str) -> bytes:
    """A file with the caveat at its head, as its kind has remarks; as it was without a caveat."""
    if not caveat:
        return content
    if name.endswith(".json"):
        return _json({"caveat": caveat, **json.loads(content)})
    suffix = PurePath(name).suffix
    if suffix == ".jsonl":
        rows = [{"caveat": caveat, **json.loads(line)} for line in content.splitlines()]
        return "".join(json.dumps(row) + "\n" for row in rows).encode()
    if suffix == ".md":
        return f"> {caveat}\n\n".encode() + content
    written = languages_of_suffix(suffix)
    other = Syntax.C if suffix in _HEADERS else Syntax.PYTHON
    sign = (written[0].syntax if written else other).value
    return f"{sign} {caveat}\n".encode() + content


def _json(value: Mapping[str, JsonValue]) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode()


def _plan(bundle: Bundle) -> dict[str, JsonValue]:
    """How the kernel is called: the entry point, or the launches."""
    known = provenance(bundle)
    tensors = ("axes", "inputs", "outputs")
    entry = {"declaration": signature(bundle)} if language_of(bundle.language).is_native else {}
    return {
        "schema_version": 1,
        "problem": bundle.problem,
        "language": bundle.language,
        "target": bundle.verdict.target,
        "signature": {**entry, **{name: known[name] for name in tensors}},
        "launch_plan": scrub_paths(bundle.plan),
    }


def package_files(bundle: Bundle) -> Files:
    """A folder that pip installs: the kernel as a torch operator with its self-test."""
    check_package(bundle)
    check_backward(bundle)
    module, language = module_name(bundle), language_of(bundle.language)
    name = f"kernel{language.suffix}"
    kernel = kernel_text(bundle).encode()
    shared: dict[str, object] = {"kernel_sha256": hashlib.sha256(kernel).hexdigest()}
    shared |= {"is_built": True}
    modules = dict(_PACKAGE_MODULES)
    if not language.is_native:
        way = "library" if language is CUDA else choose_call(bundle, "package")
        modules["_launch.py"] = "package_launch.py.j2"
        shared |= {"launcher": "_launch", "is_built": way == "library"}
        shared |= {"architecture": bundle.verdict.target, **describe_call(bundle, way)}
    if find_csr(bundle) is not None:
        modules["_csr.py"] = "package_csr.py.j2"
    if not shared["is_built"]:
        del modules["_build.py"]
    files = {
        f"{module}/{each}": render(template, bundle, **shared).encode()
        for each, template in modules.items()
    }
    files |= _apply_files(bundle, module)
    files |= {f"{module}/{name}": text for name, text in _prebuilt_json(bundle, kernel).items()}
    evidence = _evidence(bundle, f"{module}/{name}")
    files |= {
        f"{module}/py.typed": b"",
        f"{module}/record.json": evidence.pop("record.json"),
        f"{module}/provenance.json": _tell_gradient(bundle, evidence.pop("provenance.json")),
        "README.md": render(
            "package_readme.md.j2", bundle, features=list_features(bundle)
        ).encode(),
        "pyproject.toml": render("package_pyproject.toml.j2", bundle).encode(),
        **evidence,
    }
    said = {name: mark_caveat(name, content, bundle.caveat) for name, content in files.items()}
    if bundle.prebuilt is not None:
        said[f"{module}/{PREBUILT}"] = bundle.prebuilt.content
    said |= _backward_files(bundle, module)
    return {**said, f"{module}/{name}": kernel, f"{module}/cases.npz": cases_npz(bundle)}


def _tell_gradient(bundle: Bundle, told: bytes) -> bytes:
    """The provenance, and what the operator's gradient is computed by."""
    gradient = find_gradient(bundle)
    ways: dict[str, JsonValue] = dict(gradient.ways) if gradient else {}
    return _json({**json.loads(told), "gradient": ways or None})


def _backward_files(bundle: Bundle, module: str) -> Files:
    """The second kernel's package, within the first one's: its own record, cases and self-test."""
    if bundle.backward is None:
        return {}
    inner = f"{module_name(bundle.backward)}/"
    made = package_files(bundle.backward).items()
    return {f"{module}/{name}": content for name, content in made if name.startswith(inner)}


def kernel_text(bundle: Bundle) -> str:
    """The kernel's file in a package, as it is compiled there."""
    name = f"kernel{language_of(bundle.language).suffix}"
    return mark_caveat(name, write_kernel(bundle).encode(), bundle.caveat).decode()


def _prebuilt_json(bundle: Bundle, kernel: bytes) -> Files:
    """What the prebuilt library is for, and of which source; nothing where there is none."""
    made = bundle.prebuilt
    if made is None:
        return {}
    told: dict[str, JsonValue] = {
        "schema_version": 1,
        "file": PREBUILT,
        "sha256": hashlib.sha256(made.content).hexdigest(),
        "source_sha256": hashlib.sha256(kernel).hexdigest(),
        "platform": made.platform,
        "cuda": made.cuda,
        "architectures": list(made.architectures),
        "ptx": made.architectures[-1],
        "flags": list(made.flags),
    }
    return {"prebuilt.json": _json(told)}


def _apply_files(bundle: Bundle, module: str) -> Files:
    """What puts the operator in a library's place; none where no call of torch's means the same."""
    replaced = find_replaced(bundle)
    if replaced is None:
        return {}
    templates = {"apply.py": "package_apply.py.j2", "_calls.py": replaced.template}
    return {
        f"{module}/{name}": render(template, bundle, calls=replaced.calls).encode()
        for name, template in templates.items()
    }


def cases_npz(bundle: Bundle) -> bytes:
    """The recorded cases as arrays without pickle."""
    arrays: dict[str, np.ndarray] = {"names": np.array([case.name for case in bundle.cases])}
    keywords = plan_axes(bundle).keywords
    for number, case in enumerate(bundle.cases):
        for tensor in bundle.inputs:
            arrays[f"{number}/inputs/{tensor.name}"] = _as_numpy_has(case.inputs[tensor.name])
        for axis in keywords:
            arrays[f"{number}/axes/{axis}"] = np.array(case.axes[axis], dtype=np.int64)
        for tensor in bundle.outputs:
            arrays[f"{number}/outputs/{tensor.name}"] = case.outputs[tensor.name]
            arrays[f"{number}/tolerances/{tensor.name}"] = np.asarray(case.tolerances[tensor.name])
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def _as_numpy_has(array: np.ndarray) -> np.ndarray:
    """Contiguous; the bits, where the type is none of numpy's own."""
    array = np.ascontiguousarray(array)
    return array if dtype_of(array.dtype.name).in_numpy else array.view(f"i{array.itemsize}")


def _evidence(bundle: Bundle, kernel: str) -> Files:
    return {
        "record.json": record_json(bundle).encode(),
        "provenance.json": _json(provenance(bundle)),
        "LICENSE-NOTE.md": render("licence.md.j2", bundle, kernel=kernel).encode(),
    }


def _text_files(make: Callable[[Bundle], Texts]) -> Callable[[Bundle], Files]:
    """A form that is texts, each marked, with the evidence beside them."""

    def files(bundle: Bundle) -> Files:
        texts = make(bundle)
        readme = render("form_readme.md.j2", bundle, usage=texts["README.md"])
        kernel = next(iter(texts))
        content = {**texts, "README.md": readme}
        made = {name: text.encode() for name, text in content.items()}
        made |= _evidence(bundle, kernel)
        return {name: mark_caveat(name, text, bundle.caveat) for name, text in made.items()}

    return files


def flashinfer_files(bundle: Bundle) -> Files:
    """A data set of flashinfer-bench with one definition, one solution and what was measured."""
    pattern = write_pattern(bundle)
    return _text_files(flashinfer_texts)(bundle) | pattern


FORMS: dict[str, Callable[[Bundle], Files]] = {
    "source": source_files,
    "package": package_files,
    "modelnew": _text_files(modelnew_texts),
    "header": _text_files(header_texts),
    "aot": _text_files(aot_texts),
    "kernels-hub": _text_files(hub_texts),
    "flashinfer": flashinfer_files,
}
