# SPDX-License-Identifier: Apache-2.0
"""What a bundle must satisfy before a file is written. It raises and changes nothing."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable

import numpy as np

from ...errors import NotDiscriminatingError, UsageError
from ...kernelbench.codecs import host_dtype
from ...kernelbench.dtypes import FLOAT64, INT64, TENSORS, dtype_of
from ...kernelbench.languages import CPP, CUDA, LANGUAGES, TRITON, language_of
from ..records import Status, candidate_id
from ..wording import mebibytes
from .axes import AxisPlan, axis_values, extents, parse_term, plan_axes
from .bundle import Bundle, Case, TensorSpec

DTYPES = tuple(each.name for each in (*TENSORS, FLOAT64, INT64))

CASE_BYTES = 16 << 20
"""A package is handed around with its cases: they are meant to be small."""

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")
# No slash: a folder of the machine that made the export means nothing elsewhere.
_FLAG = re.compile(r"-[A-Za-z][A-Za-z0-9_+=.,-]*")
_RESERVED = frozenset({"out", "self", "torch", "int", "tuple", "Tensor"})
"""What the generated module uses itself."""


def check_bundle(bundle: Bundle, *, unverified: bool) -> None:
    """Raises UsageError where the bundle cannot be exported truthfully."""
    short = bundle.candidate[:12]
    if bundle.verdict.status is not Status.VERIFIED and not unverified:
        raise _unverified_error(bundle)
    if candidate_id(bundle.source) != bundle.candidate:
        raise UsageError(f"the source of candidate {short} does not have the hash it is named by")
    if bundle.verdict.candidate != bundle.candidate:
        raise UsageError(
            f"the verdict is about {bundle.verdict.candidate[:12]}, not about candidate {short}"
        )
    if bundle.language not in LANGUAGES:
        raise UsageError(
            f"candidate {short} is written in {bundle.language}, which cannot be exported",
            hint=f"exports know {', '.join(LANGUAGES)}",
        )
    _check_names(bundle)
    _check_flags(bundle.flags)


def _unverified_error(bundle: Bundle) -> UsageError:
    verdict, short = bundle.verdict, bundle.candidate[:12]
    if verdict.emulated:
        return UsageError(
            f"candidate {short} was only emulated for {verdict.target}, never timed on a device: "
            f"it is {verdict.status}, not VERIFIED, and is not exported",
            hint="evaluate it where the device is, or pass --unverified to export it with that "
            "mark in every file",
        )
    return UsageError(
        f"candidate {short} is {verdict.status}, not VERIFIED, and is not exported",
        hint="evaluate it with `kernelwright eval`, or pass --unverified to export it with that "
        "mark in every file",
    )


def check_package(bundle: Bundle) -> None:
    """Raises UsageError where a bundle cannot be made into a package."""
    if not (language_of(bundle.language).is_native or bundle.language in (CUDA.name, TRITON.name)):
        raise UsageError(
            f"candidate {bundle.candidate[:12]} is written in {bundle.language}; a package is made "
            f"of {CPP.name}, {CUDA.name} and {TRITON.name} only",
            hint="--format source gives its file, its plan and its record; --format kernels-hub a "
            "torch operator that is built elsewhere",
        )
    if bundle.language == CUDA.name and bundle.host is None:
        raise UsageError(
            f"candidate {bundle.candidate[:12]} has no launch plan that could be written out for a "
            "package",
            hint="--format source gives its file, its plan and its record",
        )
    if bundle.is_prepared:
        raise UsageError(
            f"candidate {bundle.candidate[:12]} makes a plan of its pattern before it is called, "
            "which a package's operator has no place for",
            hint="--format source gives its file with both functions, and its record",
        )
    check_cases(bundle)


def check_cases(bundle: Bundle) -> None:
    """Raises where the recorded cases could not show that a kernel is wrong."""
    if not bundle.cases:
        raise UsageError(
            f"a package of {bundle.problem} needs at least one recorded case for its self-test",
            hint="give the bundle cases made by the problem's oracle",
        )
    size = sum(
        np.asarray(array).nbytes
        for case in bundle.cases
        for arrays in (case.inputs, case.outputs, case.tolerances)
        for array in arrays.values()
    )
    if size > CASE_BYTES:
        raise UsageError(
            f"the recorded cases hold {mebibytes(size)}, more than {mebibytes(CASE_BYTES)}",
            hint="record smaller cases",
        )
    plan = plan_axes(bundle)
    for case in bundle.cases:
        _check_case(bundle, case, plan)
    if all(_null_passes(case) for case in bundle.cases):
        raise NotDiscriminatingError(
            f"a kernel that writes zeros would pass every recorded case of {bundle.problem}"
        )


def _check_names(bundle: Bundle) -> None:
    names = [*bundle.axes, *(tensor.name for tensor in bundle.tensors)]
    for name in [*names, bundle.entry, *bundle.kernels]:
        if not _IDENTIFIER.fullmatch(name) or keyword.iskeyword(name) or name in _RESERVED:
            raise UsageError(f"'{name}' of {bundle.problem} cannot be the name of a parameter")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise UsageError(f"{bundle.problem} uses the name '{repeated[0]}' twice")
    if not bundle.inputs or not bundle.outputs:
        raise UsageError(f"{bundle.problem} needs at least one input and one output")
    for tensor in bundle.tensors:
        if tensor.dtype not in DTYPES:
            raise UsageError(
                f"{bundle.problem}: tensor '{tensor.name}' has dtype {tensor.dtype}",
                hint=f"exports know {', '.join(DTYPES)}",
            )
        for term in tensor.shape:
            unknown = [axis for axis in parse_term(term).axes if axis not in bundle.axes]
            if unknown:
                raise UsageError(
                    f"{bundle.problem}: the shape of '{tensor.name}' names '{unknown[0]}', "
                    "which is not an axis"
                )


def _check_flags(flags: Iterable[str]) -> None:
    for flag in flags:
        if not _FLAG.fullmatch(flag):
            raise UsageError(f"the build flag '{flag}' cannot be carried into an export")


def _check_case(bundle: Bundle, case: Case, plan: AxisPlan) -> None:
    where = f"case '{case.name}' of {bundle.problem}"
    lacking = [axis for axis in plan.keywords if axis not in case.axes]
    lacking += [tensor.name for tensor in bundle.inputs if tensor.name not in case.inputs]
    lacking += [
        tensor.name
        for tensor in bundle.outputs
        if tensor.name not in case.outputs or tensor.name not in case.tolerances
    ]
    if lacking:
        raise UsageError(f"{where} lacks '{lacking[0]}'")
    for tensor in bundle.inputs:
        array = case.inputs[tensor.name]
        if array.dtype != host_dtype(dtype_of(tensor.dtype)):
            raise UsageError(f"{where}: '{tensor.name}' is {array.dtype}, not {tensor.dtype}")
        _check_dimensions(where, tensor, array)
    shapes = {tensor.name: case.inputs[tensor.name].shape for tensor in bundle.inputs}
    values = axis_values(plan, shapes, case.axes)
    for tensor in bundle.tensors:
        array = (case.inputs if tensor in bundle.inputs else case.outputs)[tensor.name]
        wanted = extents(tensor.shape, values)
        if array.shape != wanted:
            raise UsageError(f"{where}: '{tensor.name}' has shape {array.shape}, not {wanted}")
    for tensor in bundle.outputs:
        _check_answer(where, tensor.name, case)


def _check_dimensions(where: str, tensor: TensorSpec, array: np.ndarray) -> None:
    if array.ndim != len(tensor.shape):
        raise UsageError(
            f"{where}: '{tensor.name}' has {array.ndim} dimensions, not {len(tensor.shape)}"
        )


def _check_answer(where: str, name: str, case: Case) -> None:
    value, tolerance = case.outputs[name], case.tolerances[name]
    if value.dtype != np.float64 or tolerance.dtype != np.float64:
        raise UsageError(f"{where}: the answer for '{name}' must be float64")
    if not np.all(tolerance >= 0):
        raise UsageError(f"{where}: a tolerance of '{name}' is not a number ≥ 0")
    try:
        np.broadcast_to(tolerance, value.shape)
    except ValueError as error:
        raise UsageError(
            f"{where}: tolerances of shape {tolerance.shape} do not fit '{name}' "
            f"of shape {value.shape}"
        ) from error


def _null_passes(case: Case) -> bool:
    return all(
        bool(np.all(np.abs(value) <= case.tolerances[name])) for name, value in case.outputs.items()
    )
