# SPDX-License-Identifier: Apache-2.0
"""Which arithmetic a problem allows, and so which peak of a machine bounds it.

A policy says in what types products may be computed (precision.py). Where one product can be made
of several narrower ones and stay within the policy's limit, that is a way as well: such kernels are
honest, and no floor may call them too fast.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from .dtypes import BFLOAT16, FLOAT16, INT8, UINT8, dtype_of
from .precision import INTEGERS, STRICT_FP32, TF32, TF32X3
from .problem import Problem

FP32 = "fp32"
"""The arithmetic of the ordinary units, as `targets.ARITHMETIC` names it."""
BYTES_ALONE = "bytes alone"
"""How it is said that a floor knows no peak of the arithmetic."""
BF16_PRODUCTS = 6
"""Products in bfloat16 that make one as exact as float32: of three parts of 8 bits each, without
those below the last place. Three in TF32 do not, and strict-fp32 refuses them."""
TF32_PRODUCTS = 3
_OF_TYPE = {FLOAT16.name: "fp16", BFLOAT16.name: "bf16", INT8.name: "int8", UINT8.name: "int8"}
_PRODUCTS = frozenset({"contraction", "attention"})
"""Tags of what multiplies matrices; of sparse ones tensor cores are no matter of course."""


class Way(NamedTuple):
    """One way to make a product of the problem's."""

    kind: str
    """One of `targets.ARITHMETIC`."""
    products: int = 1
    """Of that kind that make one."""

    @property
    def is_tensor(self) -> bool:
        """Whether tensor cores do it."""
        return self.kind != FP32


class Peak(NamedTuple):
    """What bounds a problem's arithmetic on a machine."""

    rate: float
    """Of the problem's own operations, in the unit of the rates that were given."""
    way: Way

    @property
    def words(self) -> str:
        """`fp32`, `int8 on tensor cores`, `bf16 on tensor cores, 6 products for one`."""
        where = " on tensor cores" if self.way.is_tensor else ""
        parts = f", {self.way.products} products for one" if self.way.products > 1 else ""
        return f"{self.way.kind}{where}{parts}"


@dataclass(frozen=True)
class Arithmetic:
    """What one problem allows."""

    policy: str
    main: tuple[Way, ...]
    """What its policy is there for; empty where no peak of its types is known."""
    others: tuple[Way, ...] = ()
    """What is allowed beside."""
    is_product: bool = False
    """Whether it is a product of dense matrices."""

    @property
    def tensor_kinds(self) -> tuple[str, ...]:
        """The types in which tensor cores may do its products as its policy asks."""
        return tuple(way.kind for way in self.main if way.is_tensor)

    @property
    def has_float(self) -> bool:
        """Whether anything but whole numbers is multiplied."""
        return self.policy != INTEGERS

    @property
    def is_narrow(self) -> bool:
        """Whether its policy is there for products of 16-bit floats, or for what parts make."""
        return any(way.is_tensor for way in self.main)

    @property
    def words(self) -> str:
        """`int8` of a product of bytes; the policy where no peak of its types could be known."""
        return " or ".join(way.kind for way in self.main) or self.policy

    def peak(self, rates: Mapping[str, float]) -> Peak | None:
        """The most that any honest kernel reaches; None where its main arithmetic has no rate here.

        Args:
            rates: By kind, in any unit.
        """
        if not any(way.kind in rates for way in self.main):
            return None
        return _best((*self.main, *self.others), rates)

    def usual_peak(self, rates: Mapping[str, float], *, on_tensor_cores: bool) -> Peak | None:
        """What a kernel can be held to, by whether its code has tensor-core instructions.

        A product is held to what its policy is there for, whatever its code has; all else, and
        float32 in parts, only where its code does so.
        """
        if on_tensor_cores:
            return self.peak(rates)
        ordinary = tuple(way for way in (*self.main, *self.others) if not way.is_tensor)
        return _best((*self.main, *ordinary) if self.is_product else ordinary, rates)


def arithmetic_of(problem: Problem) -> Arithmetic:
    """What a problem's policy and types allow."""
    tags = frozenset(problem.tags)
    is_product = bool(tags & _PRODUCTS) and "sparse" not in tags
    policy = problem.precision.policy
    kinds = dict.fromkeys(
        _OF_TYPE[dtype_of(t.dtype).name]
        for t in problem.inputs
        if not t.is_index and t.dtype in _OF_TYPE
    )
    narrow = tuple(Way(kind) for kind in kinds)
    plain = (Way(FP32),)
    in_parts = (Way("bf16", BF16_PRODUCTS),)
    if policy == INTEGERS:
        return Arithmetic(policy, narrow, (), is_product)
    if policy == STRICT_FP32.policy:
        return Arithmetic(policy, plain, in_parts, is_product)
    if policy == TF32:
        return Arithmetic(policy, (Way("tf32"),), plain, is_product)
    if policy == TF32X3:
        return Arithmetic(policy, (Way("tf32", TF32_PRODUCTS),), (*plain, *in_parts), is_product)
    floats = tuple(way for way in narrow if way.kind != "int8")
    return Arithmetic(policy, floats or plain, plain if floats else in_parts, is_product)


def _best(ways: tuple[Way, ...], rates: Mapping[str, float]) -> Peak | None:
    found = [Peak(rates[way.kind] / way.products, way) for way in ways if way.kind in rates]
    return max(found, key=lambda peak: peak.rate, default=None)
