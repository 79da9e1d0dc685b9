# SPDX-License-Identifier: Apache-2.0
"""Reductions and scans with a function of the candidate's own, as trees over whole tiles.

Triton's interpreter calls the function for each element, which takes seconds for a tile. A device
combines neighbours in parallel, as it may: the function is associative (Triton, `tl.reduce`). Here
it is called once for each level of the tree; one that asks for the truth of single values is
called for each element, as Triton has it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class _SingleError(Exception):
    """The function wants to know one value."""


class _Trees:
    """Whether a function is being called on whole tiles."""

    is_growing = False


def grow(interpreter: Any) -> None:
    """Patches the interpreter for good."""
    reduce, scan = interpreter.ReduceOps.generic_reduce, interpreter.ScanOps.generic_scan

    def generic_reduce(self: Any, input: Any) -> Any:
        reduced = _try_whole(_reduce, interpreter, self, input)
        return reduce(self, input) if reduced is None else reduced

    def generic_scan(self: Any, input: Any) -> Any:
        scanned = _try_whole(_scan, interpreter, self, input)
        return scan(self, input) if scanned is None else scanned

    interpreter.ReduceOps.generic_reduce = generic_reduce
    interpreter.ScanOps.generic_scan = generic_scan
    _ask(interpreter)


def _ask(interpreter: Any) -> None:
    """Where a tile is asked for its truth, which Triton's interpreter takes for true."""
    dress = interpreter._patch_lang_tensor

    def dress_asking(tensor: Any, *scope: Any) -> None:
        dress(tensor, *scope)
        truth = tensor.__bool__

        def asked(self: Any) -> bool:
            if _Trees.is_growing and self.handle.data.size > 1:
                raise _SingleError
            return bool(truth(self))

        tensor.__bool__ = asked

    interpreter._patch_lang_tensor = dress_asking


def _try_whole(way: Any, interpreter: Any, operation: Any, input: Any) -> Any:
    """What comes out on whole tiles; None where that cannot be had, for whatever reason: called for
    each element, the function says what is wrong with it."""
    _Trees.is_growing = True
    try:
        return way(interpreter, operation, input)
    except Exception:
        # Of any kind: the function is the candidate's.
        return None
    finally:
        _Trees.is_growing = False


def _reduce(interpreter: Any, operation: Any, input: Any) -> list[Any]:
    """Neighbours are combined until one is left, in their order."""
    rank = len(input[0].handle.data.shape)
    dtypes = [one.dtype for one in input]
    tiles = [
        one.handle.data.reshape(-1)
        if operation.axis is None
        else np.moveaxis(one.handle.data, operation.axis, -1)
        for one in input
    ]
    while tiles[0].shape[-1] > 1:
        left, right = [t[..., 0::2] for t in tiles], [t[..., 1::2] for t in tiles]
        tiles = _combine(interpreter, operation, left, right, dtypes)
    return [
        operation.to_tensor(_pack(tile[..., 0], operation, rank), dtype)
        for tile, dtype in zip(tiles, dtypes, strict=True)
    ]


def _pack(data: Array, operation: Any, rank: int) -> Any:
    """One value for each place of the other axes, as the operation was asked for it."""
    if not operation.keep_dims:
        return data.item() if operation.axis is None else data
    if operation.axis is None:
        return data.reshape((1,) * rank)
    return np.expand_dims(data, operation.axis)


def _scan(interpreter: Any, operation: Any, input: Any) -> list[Any]:
    """Each takes in the one at a distance before it, which doubles (Hillis and Steele, 1986)."""
    dtypes = [one.dtype for one in input]
    tiles = [np.moveaxis(one.handle.data, operation.axis, -1) for one in input]
    length, distance = tiles[0].shape[-1], 1
    while distance < length:
        before = [np.roll(tile, distance, axis=-1) for tile in tiles]
        made = _combine(interpreter, operation, before, tiles, dtypes)
        has_one = np.arange(length) >= distance
        tiles = [np.where(has_one, new, old) for new, old in zip(made, tiles, strict=True)]
        distance *= 2
    return [
        operation.to_tensor(np.ascontiguousarray(np.moveaxis(tile, -1, operation.axis)), dtype)
        for tile, dtype in zip(tiles, dtypes, strict=True)
    ]


def _combine(
    interpreter: Any, operation: Any, left: list[Array], right: list[Array], dtypes: list[Any]
) -> list[Array]:
    """What the candidate's function makes of two rows of tiles."""
    shape = left[0].shape
    arguments = [
        operation.to_tensor(np.ascontiguousarray(tile), dtype)
        for tile, dtype in zip([*left, *right], [*dtypes, *dtypes], strict=True)
    ]
    found = operation.combine_fn.fn(*arguments)
    results = found if isinstance(found, tuple | list | interpreter.tl.tuple) else (found,)
    kinds = [tile.dtype for tile in left]
    made = []
    for result, kind in zip(results, kinds, strict=True):
        data = result.handle.data if isinstance(result, interpreter.tl.tensor) else result
        made.append(np.broadcast_to(np.asarray(data, kind), shape))
    return made
