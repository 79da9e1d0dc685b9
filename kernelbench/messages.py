# SPDX-License-Identifier: Apache-2.0
"""What is computed of each entry of a CSR pattern from the rows that it joins, and the pattern by
its columns, for what a backward sums over them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .dense import blocks_of_rows
from .families import below_one, blemish, draw, is_thinned, probe_segments
from .gradients import write_each
from .problem import BaselineCall, Family, Pair, Prepared, Structure
from .sparse import draw_entries, row_numbers, row_places
from .torch_calls import dense_view, views_beside_pattern


class Turned(NamedTuple):
    """The transposed pattern."""

    structure: Structure
    """Rows and columns change places; its entries come in the order of columns."""
    order: np.ndarray
    """Of each of its entries, the number in the pattern that was turned."""


def turn(structure: Structure) -> Turned:
    """The pattern by its columns; kept in the structure's cache. It needs the axis K."""
    if "turned" not in structure.cache:
        indices, columns = structure.arrays["indices"], structure.axes["K"]
        order = np.argsort(indices, kind="stable")
        starts = np.zeros(columns + 1, np.int32)
        starts[1:] = np.cumsum(np.bincount(indices, minlength=columns))
        axes = {**structure.axes, "M": columns, "K": structure.axes["M"]}
        arrays = {"indptr": starts, "indices": row_numbers(structure)[order]}
        structure.cache["turned"] = Turned(Structure(axes, arrays), order)
    found: Turned = structure.cache["turned"]
    return found


def column_places(structure: Structure) -> Pair:
    """Of every entry, its number within its column and how many that column has."""
    turned, order = turn(structure)
    found = np.empty((2, len(order)), np.int64)
    found[:, order] = row_places(turned)
    return found[0], found[1]


def draw_summed_by_columns(
    structure: Structure, family: Family, rng: np.random.Generator
) -> np.ndarray:
    """Factors of the entries whose products are summed by columns: of a long column few are not 0.
    In DENORMAL the other factor is small: none of its denormals is lost to these."""
    count = structure.axes["nnz"]
    if family is Family.PROBE:
        turned, order = turn(structure)
        entries = np.empty(count, np.float32)
        entries[order] = probe_segments(turned.arrays["indptr"], rng)
        return entries
    if family is Family.DENORMAL:
        return below_one((count,), rng)
    entries = draw(family, (count,), rng, varies=0)
    if family is not Family.NORMAL:
        entries[is_thinned(*column_places(structure), (count,), rng)] = 0
    blemish(family, entries, rng, places=draw_entries(structure, rng))
    return entries


def multiply_at_entries(structure: Structure, left: np.ndarray, right: np.ndarray) -> Pair:
    """Of every entry the product of its row of `left` with its column's row of `right`, and of
    their magnitudes, float64."""
    rows, indices = row_numbers(structure), structure.arrays["indices"]
    left, right = left.astype(np.float64), right.astype(np.float64)
    value, scale = np.empty(len(rows)), np.empty(len(rows))
    for part in blocks_of_rows((len(rows), left.shape[1])):
        products = left[rows[part]]
        products *= right[indices[part]]
        products.sum(1, out=value[part])
        np.abs(products, out=products).sum(1, out=scale[part])
    return value, scale


def prepare_products(
    torch: Any, structure: Structure, size: tuple[int, int]
) -> Callable[[Any, Any, Any], tuple[Any, Any]]:
    """What torch has, in float32, for the backward of a product of entries and B, given G: G B' at
    the entries, and the product with G of the transposed matrix, whose pattern is made once, as
    libraries for graphs keep it."""
    turned, order = turn(structure)
    place = dense_view(order)

    def make(pattern: Structure, values: Any, size: tuple[int, int]) -> Any:
        arrays = [dense_view(pattern.arrays[name]) for name in ("indptr", "indices")]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
            return torch.sparse_csr_tensor(*arrays, values, size, check_invariants=False)

    nothing = make(structure, torch.zeros_like(place, dtype=torch.float32), size)

    def multiply(entries: Any, B: Any, G: Any) -> tuple[Any, Any]:
        sampled = torch.sparse.sampled_addmm(nothing, G, B.t(), beta=0.0)
        there = make(turned, entries.index_select(0, place), size[::-1])
        return sampled.values(), there @ G

    return multiply


def multiply_both_ways(torch: Any, structure: Structure, call: BaselineCall) -> Prepared:
    """The same of a call's tensors; halves are multiplied as float32."""
    entries, B, G, *gradients = views_beside_pattern(call)
    multiply = prepare_products(torch, structure, (len(G), len(B)))
    return lambda: write_each(gradients, multiply(entries.float(), B.float(), G.float()))


def push(
    torch: Any, rows: Any, columns: Any, values: Any, B: Any, G: Any, d_values: Any, d_B: Any
) -> None:
    """The same as torch.compile takes it: rows gathered, products of each entry, messages
    scattered. It writes both gradients."""
    taken = G.float()[rows]
    d_values.copy_((taken * B.float()[columns]).sum(1))
    messages = values.float()[:, None] * taken
    d_B.copy_(torch.zeros_like(B).float().index_add(0, columns, messages))
