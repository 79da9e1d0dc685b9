# SPDX-License-Identifier: Apache-2.0
"""Hands a verified kernel over as source or as a package, with its evidence."""

from .bundle import (
    Ancestor,
    Bundle,
    Case,
    HostCode,
    Measured,
    ModuleText,
    Prebuilt,
    TensorSpec,
    WorkloadInputs,
)
from .check import check_bundle
from .forms import kernel_text
from .stored import bundle_from_store
from .write import export

__all__ = [
    "Ancestor",
    "Bundle",
    "Case",
    "HostCode",
    "Measured",
    "ModuleText",
    "Prebuilt",
    "TensorSpec",
    "WorkloadInputs",
    "bundle_from_store",
    "check_bundle",
    "export",
    "kernel_text",
]
