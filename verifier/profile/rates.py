# SPDX-License-Identifier: Apache-2.0
"""What an SM does in a cycle, and a device in a second, as far as its data sheet says.

All of it is for the model: nothing here was measured.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...kernelbench.products import Product
from ...kernelbench.targets import WARP, Architecture, Vendor
from .classes import OpClass

TENSOR_SHARE = 0.8
"""Of the data sheet's tensor peak, what a large product reaches."""
WARP_TENSOR_SHARE = {90: 0.6, 100: 0.5, 103: 0.5}
"""Of the peak, what warp-wide tensor instructions reach where wider ones exist."""
_RATED_AS = {"int4": "int8", "binary": "int8"}
"""Types that data sheets do not tell, by the nearest that they do: theirs is no higher."""
_AMD_RATE = {64: 1.0, 32: 4.0}
"""By threads of a warp, warp instructions a cycle: of CDNA four SIMDs of 16 lanes in a compute unit
(CDNA 3 white paper), of RDNA four of 32 in a workgroup processor (RDNA 4 ISA)."""


@dataclass(frozen=True)
class DeviceRates:
    """The rates of a device that follow from its data sheet."""

    architecture: Architecture
    device: Product

    @property
    def fp32_rate(self) -> float:
        """Warp instructions a cycle and SM."""
        if self.architecture.vendor is Vendor.AMD:
            return _AMD_RATE[self.architecture.warp]
        return 2.0 if self.architecture.capability in (75, 80) else 4.0

    @property
    def hertz(self) -> float:
        """The data sheet's clock, else the one that the fp32 peak implies."""
        if self.device.clock_ghz:
            return self.device.clock_ghz * 1e9
        lanes = self.fp32_rate * WARP
        return self.device.tflops["fp32"] * 1e12 / (self.device.sms * lanes * 2)

    @property
    def rates(self) -> dict[OpClass, float]:
        """Warp instructions a cycle and SM, by class; other classes are only issued."""
        if self.architecture.vendor is Vendor.AMD:
            return self._rates_of_simds
        has_fp64 = self.architecture.capability in (80, 90, 100)
        return {
            OpClass.FP32: self.fp32_rate,
            OpClass.FP16: self.fp32_rate,
            OpClass.INTEGER: 2.0,
            OpClass.CONVERT: 0.5,
            OpClass.SPECIAL: 0.5,
            OpClass.WARP: 1.0,
            OpClass.FP64: self.fp32_rate / 2 if has_fp64 else 1 / 16,
        }

    @property
    def _rates_of_simds(self) -> dict[OpClass, float]:
        """AMD's: its SIMDs do all of them, special functions at a quarter of the rate."""
        rate = self.fp32_rate
        full = (OpClass.FP32, OpClass.FP16, OpClass.INTEGER, OpClass.CONVERT, OpClass.WARP)
        fp64 = rate if "fp64" in self.architecture.matrix_kinds else rate / 32
        return {**dict.fromkeys(full, rate), OpClass.SPECIAL: rate / 4, OpClass.FP64: fp64}

    def tensor_flops(self, element: str, *, is_wide: bool) -> float:
        """Operations a second of tensor cores on one type, as far as such instructions reach."""
        kind = _RATED_AS.get(element, element)
        peak = self.device.tflops.get(kind, 0.0) * 1e12
        if not peak:
            # As DMMA on a product whose tensor cores do no float64: its ordinary units do it.
            warp = self.architecture.warp
            return self.rates[OpClass.FP64] * warp * 2 * self.device.sms * self.hertz
        by_warps = WARP_TENSOR_SHARE.get(self.architecture.capability, 1.0)
        return peak * (TENSOR_SHARE if is_wide else min(TENSOR_SHARE, by_warps))
