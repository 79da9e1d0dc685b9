# SPDX-License-Identifier: Apache-2.0
"""Does an answer have the digits of its type?

Where products may be coarse, as in TF32, an answer may be off by more than a rounding of it to half
as many digits: the error law cannot tell. Its bits can: of numbers drawn at random the lower half
is zero once in thousands.
"""

from __future__ import annotations

import numpy as np

from ...kernelbench.dtypes import FLOAT32, DType
from ...kernelbench.precision import Precision
from ...kernelbench.problem import Family
from .teller import Finding

DIGITS = "digits of the answer"
DRAWN = (Family.NORMAL, Family.UNIFORM, Family.LAPLACE)
"""Families whose numbers have all digits of their type."""
LOWER = 12
"""Bits of the 23 that are looked at. A product of two factors of 11 digits has 22: of a sum of one
such product four in ten thousand have none of these."""
FEWEST, SHARE = 32, 0.5
"""Elements, and how many of them may have none."""


def is_held(precision: Precision, family: Family, dtype: DType) -> bool:
    """Whether answers of a family show it, where the law does not."""
    is_coarse = precision.u_product > 2.0**-LOWER
    return is_coarse and family in DRAWN and dtype == FLOAT32


def examine(got: np.ndarray, value: np.ndarray) -> Finding:
    """How many answers lack lower digits that the truth has.

    Args:
        got: float32; value: float64, of its shape.
    """
    low = np.uint32((1 << LOWER) - 1)
    is_full = np.isfinite(got) & (np.abs(value) > FLOAT32.smallest_normal)
    is_full &= (value.astype(np.float32).view(np.uint32) & low) != 0
    lacks = is_full & ((np.ascontiguousarray(got).view(np.uint32) & low) == 0)
    count, full = int(lacks.sum()), int(is_full.sum())
    if full < FEWEST:
        return Finding(DIGITS, 0.0, SHARE)
    at = tuple(int(i) for i in np.unravel_index(int(lacks.argmax()), got.shape))
    words = f"{count} of {full} answers end in {LOWER} zero bits, as if rounded to fewer digits"
    return Finding(DIGITS, count / full, SHARE, at, words)
