# SPDX-License-Identifier: Apache-2.0
"""Facts about a workload's structure, for recipes and launch plans: axes and row statistics."""

from __future__ import annotations

import numpy as np

from .problem import Structure

SPARSE_FEATURES = ("avg_row", "max_row", "cv_row", "empty_share", "density")


def features(structure: Structure) -> dict[str, float]:
    """The axes by name and, for a sparse pattern, the statistics of its rows.

    `avg_row` and `max_row` are entries per row, `cv_row` their standard deviation over their mean,
    `empty_share` the share of rows without an entry, `density` nnz / (M K) where the columns
    are known.
    """
    facts = {name: float(value) for name, value in structure.axes.items()}
    if "indptr" not in structure.arrays:
        return facts
    lengths = np.diff(structure.arrays["indptr"])
    if not len(lengths):
        return {**facts, "avg_row": 0.0, "max_row": 0.0, "cv_row": 0.0, "empty_share": 0.0}
    mean = float(lengths.mean())
    facts["avg_row"] = mean
    facts["max_row"] = float(lengths.max())
    facts["cv_row"] = float(lengths.std() / mean) if mean else 0.0
    facts["empty_share"] = float(np.mean(lengths == 0))
    if cells := structure.axes["M"] * structure.axes.get("K", 0):
        facts["density"] = structure.axes["nnz"] / cells
    return facts
