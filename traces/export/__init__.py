# SPDX-License-Identifier: Apache-2.0
"""Hands a verified kernel over as source or as a package, with its evidence."""

from .bundle import (
    Ancestor,
    Bundle,
    Case,
    HostCode,
    Measured,
    ModuleText,
    TensorSpec,
    WorkloadInputs,
)
from .stored import bundle_from_store
from .write import export

__all__ = [
    "Ancestor",
    "Bundle",
    "Case",
    "HostCode",
    "Measured",
    "ModuleText",
    "TensorSpec",
    "WorkloadInputs",
    "bundle_from_store",
    "export",
]
