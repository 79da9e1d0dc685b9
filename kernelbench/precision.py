# SPDX-License-Identifier: Apache-2.0
"""What arithmetic a problem allows, as figures of the error law: one row for each policy.

Gate G1 holds |y - r| against

    (SUM_FACTOR u_acc sqrt(n) + u_product) s + roundings u_out |r| + what is absolute

with s and n of problem.Expected: products off by u_product of themselves, and a float32 sum of n
terms. What a narrow output type rounds once, half a step at that size, is taken off the error
first; of codes, which are real numbers rounded to whole ones, that is 1/2. The truth is computed in
float64 of the inputs as they are in their own type, so that what quantising them loses is nobody's
error.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from pydantic import BaseModel, ConfigDict

from .dtypes import FLOAT32, DType

SUM_FACTOR = 4.0
"""Of u·sqrt(terms)·scale, which a float32 sum may be wrong by. Each of n additions rounds by up to
u times the partial sum, evenly spread. Where one early term outweighs all others, and lies just
above a power of two, every partial sum is as large as the scale: the error has a standard deviation
of u·sqrt(n/3)·scale. Twice u·sqrt(n)·scale is then 3.5 deviations, which honest kernels pass by
among millions of elements; four times is 6.9."""

APPROXIMATE = 2.0**-7
"""Of u_out·|r|, beside the last rounding: functions of float32 that are approximate, as a device's
exponential is, do not show in a narrow type."""
TF32_PRODUCT = 2 * 2.0**-10
"""Both factors cut to TF32's 10 bits, which is what mma does with what no one has rounded (PTX ISA,
mma: the lower bits of a .tf32 operand are ignored)."""
TF32X3_PRODUCT = 3 * 2.0**-20
"""Three products of parts that are cut: what is lost is the product of the two remainders, and what
lies below the 10 bits of either one."""
TF32_UNDERFLOW = 2.0**-126 * 2.0**-7
"""Of each term: a denormal factor has no 10 bits left that could be kept, and as a sum of bfloat16
parts 7 at most."""


class Precision(BaseModel):
    """What arithmetic the problem allows."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    policy: str = "strict-fp32"
    u_acc: float = FLOAT32.roundoff
    """Unit roundoff of the accumulator."""
    u_out: float = FLOAT32.roundoff
    """Unit roundoff of the output dtype."""
    u_product: float = 0.0
    """What a product may be off by, of its size, before it is summed."""
    roundings: float = 2.0
    """Of u_out·|r| an answer may be off."""
    nrmse: float = 1e-5
    """Limit of the normalised RMS error per tensor and per block of rows (gate G3)."""
    probe: float = 4 * FLOAT32.roundoff
    """Relative error allowed on the precision probe, componentwise, beside the output's rounding
    where that is coarser."""
    underflow: float = FLOAT32.smallest
    """What each term of a sum may be off by where it underflows, whatever its size."""
    step: float = 0.0
    """Half of the smallest number of a narrow output type, 1/2 of codes; 0 in float32."""
    is_split: bool = False
    """Whether factors may be computed with in parts: infinity less infinity, its rest, is NaN."""

    def limit(self, size: np.ndarray, scale: np.ndarray, terms: np.ndarray | float) -> np.ndarray:
        """What gate G1 allows elements of this size, but for what underflows.

        Args:
            size: |r|, float64; scale: the sum of |terms|; terms: how many, at least 1.
        """
        found = self.limit_before_rounding(size, scale, terms)
        found += self.half_step(size + found)
        return found

    def limit_before_rounding(
        self, size: np.ndarray, scale: np.ndarray, terms: np.ndarray | float
    ) -> np.ndarray:
        """The same of what is rounded to the output's type in the end."""
        product = SUM_FACTOR * self.u_acc * np.sqrt(terms) + self.u_product
        found: np.ndarray = scale * product + (self.roundings * self.u_out) * size
        return found

    def half_step(self, size: np.ndarray) -> np.ndarray:
        """What one rounding to a narrow output type takes at most of numbers of this size, which
        are not negative; 0 in float32, whose rounding is among the others."""
        if not self.step:
            return np.zeros_like(size)
        _, exponents = np.frexp(np.maximum(size, self.step))
        found: np.ndarray = np.maximum(np.ldexp(self.u_out, exponents - 1), self.step)
        return found

    def take_off_rounding(
        self, error: np.ndarray, size: np.ndarray, limit: np.ndarray
    ) -> np.ndarray:
        """What the rounding to a narrow type does not explain of errors that were within `limit`
        before. What it explains says nothing: of few answers, or of equal ones, it may be all."""
        if not self.step:
            return error
        found: np.ndarray = np.maximum(error - self.half_step(size + limit), 0.0)
        return found

    def rounded_to(self, dtype: DType) -> Precision:
        """The same for one output, which is rounded to its type once."""
        if not dtype.is_float or dtype.roundoff <= self.u_out:
            return self
        return self.model_copy(
            update={
                "u_out": dtype.roundoff,
                "roundings": APPROXIMATE,
                "nrmse": self.nrmse + APPROXIMATE * dtype.roundoff,
                "step": dtype.smallest / 2,
            }
        )

    def rounded_to_whole(self) -> Precision:
        """The same for an output of codes: real numbers that are rounded to whole ones."""
        return self.model_copy(update={"step": 0.5})


STRICT_FP32 = Precision()
FP32_SUMS, INTEGERS, TF32, TF32X3 = "fp32-sums", "exact-integers", "tf32", "tf32x3"
POLICIES = (STRICT_FP32.policy, FP32_SUMS, INTEGERS, TF32, TF32X3)
ASKED = (TF32, TF32X3)
"""Those that a file has to ask for: the others follow from the types of its tensors."""


def precision_of(
    inputs: Iterable[DType], outputs: Iterable[DType], nrmse: float, asked: str = ""
) -> Precision:
    """The precision of a problem with tensors of these types, for answers in float32.

    Args:
        nrmse: the limit of G3 there.
        asked: one of ASKED, or none.
    """
    types = [*inputs, *outputs]
    if asked:
        product = TF32_PRODUCT if asked == TF32 else TF32X3_PRODUCT
        return Precision(
            policy=asked,
            u_product=product,
            nrmse=nrmse + product,
            probe=4 * FLOAT32.roundoff + product,
            underflow=TF32_UNDERFLOW,
            is_split=asked == TF32X3,
        )
    if not any(each.is_float for each in types):
        return Precision(policy=INTEGERS, nrmse=nrmse)
    is_strict = all(each.bytes >= FLOAT32.bytes for each in types if each.is_float)
    return Precision(policy=STRICT_FP32.policy if is_strict else FP32_SUMS, nrmse=nrmse)
