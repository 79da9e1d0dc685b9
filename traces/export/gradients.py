# SPDX-License-Identifier: Apache-2.0
"""What an operator's gradient is computed by, input by input. It writes no code and no file."""

from __future__ import annotations

from typing import NamedTuple

from ...errors import UsageError
from ...kernelbench.languages import language_of
from .bundle import Bundle
from .replaced import HALVES, plain_name


class Gradient(NamedTuple):
    """The backward of an operator, in terms of problems that kernels are verified for."""

    template: str
    ways: dict[str, str]
    """By input: what computes its gradient."""


_BACKWARD = {"spmm_csr": "sddmm_csr"}
"""By problem: the one that a second kernel of an export may be for."""

BY_TORCH = "operations of torch's, which nobody verified here"


def find_gradient(bundle: Bundle) -> Gradient | None:
    """Of the operator; None where it has none."""
    problem = plain_name(bundle)
    if problem == "gemm":
        a, b = (t.name for t in bundle.inputs)
        ways = {a: f"this kernel, on the gradient and {b} transposed"}
        ways[b] = f"this kernel, on {a} transposed and the gradient"
        return Gradient("gradient_gemm.py.j2", ways)
    if problem == "spmm_csr":
        second = bundle.backward
        by_second = f"the kernel {second.short} of {second.problem}" if second else BY_TORCH
        transposed = "this kernel, on the transposed matrix, whose pattern torch makes"
        return Gradient("gradient_spmm.py.j2", {"values": by_second, "B": transposed})
    return None


def check_backward(bundle: Bundle) -> None:
    """Raises UsageError where the second kernel computes no gradient of the first."""
    second = bundle.backward
    if second is None:
        return
    wanted = _BACKWARD.get(plain_name(bundle))
    if wanted is None:
        raise UsageError(
            f"the gradient of {bundle.problem} takes no second kernel",
            hint=f"leave --backward out; it is for {', '.join(_BACKWARD)}",
        )
    half = next((half for half in HALVES if bundle.problem.endswith(half)), "")
    if second.problem != wanted + half:
        raise UsageError(
            f"the gradient of {bundle.problem} takes a kernel of {wanted + half}, and "
            f"{second.short} is one of {second.problem}",
            hint=f"name a verified candidate of {wanted + half}",
        )
    is_for_gpu = [language_of(each.language).is_for_gpu for each in (bundle, second)]
    if is_for_gpu[0] != is_for_gpu[1]:
        raise UsageError(
            f"{bundle.short} is written in {bundle.language} and {second.short} in "
            f"{second.language}: one runs on a GPU, the other on the CPU",
            hint="name two candidates for the same kind of device",
        )
