# SPDX-License-Identifier: Apache-2.0
"""Softmax over the entries of each row of a sparse pattern, per head: attention on a graph.

The scale is that of `softmax`, with the row's length as the number of terms.
"""

from __future__ import annotations

import numpy as np

from ..dtypes import FLOAT32
from ..families import blemish, draw, noise, raise_peaks, sink
from ..problem import (
    Arrays,
    Axes,
    Baseline,
    BaselineCall,
    Expected,
    Family,
    Precision,
    Prepared,
    Problem,
    Structure,
    Tensor,
    Workload,
)
from ..sizes import ALONG_Y
from ..sparse import (
    INDPTR,
    bulk_of,
    row_lengths,
    row_numbers,
    row_places,
    segment_sums,
    structure_maker,
    variations_of,
)
from ..standins import STAND_INS
from ..twins import twins
from .softmax import FARTHEST, add_noise, drift, reach, softmax_scale

AXES = ("M", "H", "nnz")
DENSE = {"H": ALONG_Y}


def values(structure: Structure, family: Family, rng: np.random.Generator) -> Arrays:
    """The logits; LARGE has some that overflow exp without the subtraction of the maximum, and in
    half of the rows of each head one that overflows it unless the maximum is that one.

    NONFINITE masks entries by -inf, never the first one of a row, and has a few NaN.
    """
    nnz, heads = structure.axes["nnz"], structure.axes["H"]
    places, lengths = (each[:, None] for each in row_places(structure))
    if family is Family.LARGE:
        offsets = rng.choice(np.array((100, 150, 200, -120), np.float32), structure.axes["M"])
        e = noise((nnz, heads), rng)
        e += offsets[row_numbers(structure)][:, None]
        sink(e, places, lengths, rng)
        raise_peaks(e, row_lengths(structure), rng)
        return {"e": e}
    if family is Family.CONSTANT:
        e = draw(family, (nnz, heads), rng, varies=1)
        sink(e, places, lengths, rng)
        return {"e": e}
    e = add_noise(draw(family, (nnz * heads,), rng).reshape(nnz, heads), family, rng)
    sink(e, places, lengths, rng)
    if family is Family.NONFINITE:
        is_masked = rng.random((nnz, heads)) < 1 / 8
        indptr = structure.arrays["indptr"]
        is_masked[indptr[:-1][np.diff(indptr) > 0]] = False
        e[is_masked] = -np.inf
        blemish(e, rng, (np.nan,))
    return {"e": e}


@np.errstate(invalid="ignore")
def oracle(structure: Structure, inputs: Arrays) -> dict[str, Expected]:
    """exp(e - max) / sum per row and head in float64."""
    indptr, rows = structure.arrays["indptr"], row_numbers(structure)
    lengths = row_lengths(structure)
    e = inputs["e"].astype(np.float64)
    full = np.flatnonzero(lengths)
    highest = np.zeros((len(lengths), e.shape[1]))
    if len(full):
        highest[full] = np.maximum.reduceat(inputs["e"], indptr[full], axis=0)
    distance = highest[rows]
    distance -= e
    np.minimum(distance, FARTHEST, out=distance)
    value = np.exp(-distance)
    value /= segment_sums(structure, value)[rows]
    reached = reach(distance, inputs["e"])
    spread = segment_sums(structure, value * reached)[rows]
    lost = segment_sums(structure, drift(value))[rows]
    terms = lengths[rows].astype(np.float64)[:, None]
    return {"alpha": Expected(value, softmax_scale(value, reached, spread, terms, lost), terms)}


def flops(axes: Axes) -> float:
    """Maximum, subtraction, exponential, sum and division: five per entry and head."""
    return 5.0 * axes["nnz"] * axes["H"]


def bytes_moved(axes: Axes) -> float:
    """e once, alpha once, row pointers once."""
    return 8.0 * axes["nnz"] * axes["H"] + 4.0 * (axes["M"] + 1)


def _torch(call: BaselineCall) -> Prepared:
    import torch

    from ..torch_calls import dense_view

    e, alpha = dense_view(call.inputs["e"]), dense_view(call.outputs["alpha"])
    offsets = dense_view(call.inputs["indptr"]).long()
    rows = dense_view(row_numbers(Structure(call.axes, call.inputs)))
    gathered = torch.empty_like(e)

    def per_row(entries: torch.Tensor, reduce: str) -> torch.Tensor:
        # unsafe: skips a check of the offsets that never change.
        rowwise = torch.segment_reduce(entries, reduce, offsets=offsets, axis=0, unsafe=True)
        return torch.index_select(rowwise, 0, rows, out=gathered)

    def compute() -> None:
        with torch.inference_mode():
            torch.sub(e, per_row(e, "max"), out=alpha)
            alpha.exp_()
            alpha.div_(per_row(alpha, "sum"))

    return compute


def _prepare_compiled(call: BaselineCall) -> Prepared:
    import torch

    from ..compiled_calls import prepare_compiled
    from ..torch_calls import dense_view

    e, alpha = dense_view(call.inputs["e"]), dense_view(call.outputs["alpha"])
    rows = dense_view(row_numbers(Structure(call.axes, call.inputs))).long()
    wide = rows[:, None].expand(e.shape).contiguous()
    row_count = (call.axes["M"], call.axes["H"])

    def softmax(e: torch.Tensor, rows: torch.Tensor, wide: torch.Tensor, a: torch.Tensor) -> None:
        highest = e.new_full(row_count, -torch.inf).scatter_reduce(0, wide, e, "amax")
        risen = torch.exp(e - highest[rows])
        sums = e.new_zeros(row_count).scatter_add(0, wide, risen)
        a.copy_(risen / sums[rows])

    return prepare_compiled(softmax, e, rows, wide, alpha)


PROBLEM = Problem(
    name="edge_softmax",
    title="Softmax over the entries of each row, per head (CSR)",
    is_row_wise=True,
    definition="alpha[p,h] = exp(e[p,h] - max over row) / sum over q in row i of "
    "exp(e[q,h] - max), for p in [indptr[i], indptr[i+1])",
    axes={"M": "rows", "H": "heads", "nnz": "entries"},
    inputs=(
        INDPTR,
        Tensor(name="e", dtype=FLOAT32.name, shape=("nnz", "H"), meaning="logits, row-major"),
    ),
    outputs=(
        Tensor(name="alpha", dtype=FLOAT32.name, shape=("nnz", "H"), meaning="sums to 1 per row"),
    ),
    source="dgNN, arXiv 2110.09524; TC-GNN (AGNN)",
    workloads=(
        Workload(
            name="enron-4",
            kind="realistic",
            axes={"H": 4},
            generator=STAND_INS["email-Enron"].generator,
            note="statistics of email-Enron, four heads",
        ),
        Workload(
            name="tiny",
            kind="tiny",
            axes={"H": 4},
            generator={"law": "degree", "rows": 1000, "nnz": 6000, "cv": 2.0},
        ),
        Workload(
            name="caida-8",
            kind="realistic",
            axes={"H": 8},
            generator=STAND_INS["as-caida"].generator,
            note="a few huge hubs",
        ),
        Workload(
            name="hub-3",
            kind="adversarial",
            axes={"H": 3},
            generator={"law": "hub", "n": 2000, "nnz": 8000},
            note="one full row, 40 % empty rows, three heads",
        ),
        Workload(
            name="hub-1",
            kind="adversarial",
            axes={"H": 1},
            generator={"law": "hub", "n": 5000, "nnz": 20_000},
            note="the same, one head",
        ),
    ),
    structure=structure_maker(*AXES),
    values=values,
    oracle=oracle,
    flops=flops,
    bytes_moved=bytes_moved,
    # scipy has nothing for it.
    baselines=(Baseline("torch eager", _torch), Baseline("torch.compile", _prepare_compiled)),
    variations=variations_of(*AXES, dense=DENSE),
    bulk=bulk_of(*AXES, dense=DENSE),
    families=(
        Family.NORMAL,
        Family.UNIFORM,
        Family.LAPLACE,
        Family.LOGNORMAL,
        Family.EXPONENTIAL,
        Family.OUTLIERS,
        Family.ALTERNATING,
        Family.CONSTANT,
        Family.SORTED,
        Family.DENORMAL,
        Family.LARGE,
        Family.NONFINITE,
    ),
    twins=twins,
    precision=Precision(nrmse=1.5e-4),
    accuracy=(
        "n = the entries of the row. With d = max - e + |e| of an entry and D the mean of d "
        "weighted by r the limit is 4 u r (2 sqrt(n) + d + D + 8): enough for an exponential "
        "that is a few units in the last place off, and for one to the base 2 of e log2(e). "
        "Answers below 2^-124 may be flushed to 0. "
        "A NaN makes its row of that head NaN; -inf is a mask, never the first entry of a "
        "row; +inf is never drawn."
    ),
    tags=("sparse", "graph", "attention", "normalisation"),
)
