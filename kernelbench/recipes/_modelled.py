# SPDX-License-Identifier: Apache-2.0
"""What a call takes by a model of the machine: the order in which a search looks at knobs at first.

The larger of what arithmetic and memory take (the roofline: Williams, Waterman and Patterson, 2009)
at the share of the machine that the knobs use, times what the thread with the most work has more
than its share, and a fixed time for each piece that is dealt. Which of two points is faster is what
it is for; its microseconds are modelled, and no figure is made of them. Fewer trials by such a
filter: Huang et al., ALCOP, MLSys 2023.

Every function returns microseconds of a call, NaN where a fact is not known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ..recipe import Facts, Knobs
from ._knobs import integer

Model = Callable[[Knobs, Facts], float]

CHAINS = 8
"""Independent operations that two units with a latency of four keep busy."""
ONE_CORES_BANDWIDTH = 0.7
"""Of the memory's, that one core draws alone."""
CACHED_BYTES = 16 << 20
"""What is larger does not stay in the caches from one call to the next."""
OWN_CACHE_BYTES = 1 << 19
"""What one core keeps by itself."""
ASKED = ("cpus", "vector_bytes", "memory_gbs", "fma_gflops")
"""Facts that every model needs."""
WIDTH = "element_bytes"
"""The fact that recipes for a policy add: bytes of an element, where it is not float32."""
DEAL_US = 0.15
"""To hand a thread its next piece."""
EXP_FLOPS, DIVISION_FLOPS = 22, 4
"""As many as an exponential takes on vectors, and a division."""
PLACED_FLOPS = 64
"""As many as it takes to find the sum of a product, and to add to it, one at a time."""
NOT_FETCHED = 1.2
"""By so much slower rows of the dense operand come that were not asked for ahead."""


def roofline_us(
    flops: float,
    moved: float,
    knobs: Knobs,
    facts: Facts,
    *,
    chains: float = CHAINS,
    largest: float = 0.0,
    dealt: float = 0.0,
) -> float:
    """A call of so much work.

    Args:
        flops: operations at the peak's rate.
        moved: bytes to and from memory.
        chains: independent operations in flight.
        largest: of the work, the share that one thread has to do by itself.
        dealt: pieces that threads ask for.
    """
    gflops, gbs = facts["fma_gflops"], facts["memory_gbs"]
    threads = count_threads(knobs, facts)
    share = min(1.0, threads / facts["cpus"])
    width = 0.5 if knobs.get("vector") == "half" else 1.0
    compute = flops / (1e3 * gflops * share * width * min(1.0, chains / CHAINS))
    compute *= max(1.0, largest * threads)
    # Who has most to do, alone in the end, draws as much as one core can.
    memory = moved / (1e3 * gbs) * max(1.0, max(largest, 1.0 / threads) / ONE_CORES_BANDWIDTH)
    return max(compute, memory) + DEAL_US * dealt / threads


def _asking(model: Model, *names: str) -> Model:
    """The model where these facts are known, and NaN where one is not."""
    asked = {*ASKED, *names}
    return lambda knobs, facts: model(knobs, facts) if asked <= facts.keys() else math.nan


def count_threads(knobs: Knobs, facts: Facts) -> float:
    """Those that work."""
    return integer(knobs, "threads") or facts["cpus"]


def writes(knobs: Knobs, size: float) -> float:
    """Bytes that writing so many moves: what is not written past the caches is read before."""
    is_read = size > CACHED_BYTES and not knobs.get("stream")
    return 2 * size if is_read else size


def _pieces(knobs: Knobs, rows: float, threads: float) -> float:
    """How many pieces of rows are dealt."""
    if knobs["schedule"] == "static":
        return threads
    pieces = rows / integer(knobs, "chunk")
    return pieces if knobs["schedule"] == "dynamic" else min(pieces, threads * math.log2(rows + 2))


def model_rows(
    reads: float, flops: float, tensors: int = 2, writes_twice: float = 0.0, block: str = ""
) -> Model:
    """Of a row-wise operator.

    Args:
        reads: how often an element of an input is read, from memory where a row is long.
        flops: of an element.
        tensors: as large as the matrix, the output among them.
        writes_twice: share of the output that is read and written anew.
        block: the knob that says how many elements a piece has; empty: pieces are rows.
    """

    def model(knobs: Knobs, facts: Facts) -> float:
        rows, columns = facts["M"], facts["N"]
        width, threads = facts.get(WIDTH, 4.0), count_threads(knobs, facts)
        size = width * rows * columns
        is_kept = width * columns * tensors < OWN_CACHE_BYTES
        read = (tensors - 1) * size * (1.0 if is_kept else reads)
        again = 0.0 if is_kept else 2 * size * writes_twice
        elements = integer(knobs, block) if block else columns
        dealt = _pieces(knobs, rows * columns / elements, threads)
        largest = elements / (rows * columns)
        if knobs["schedule"] != "static":
            largest *= integer(knobs, "chunk")
        chains = 4.0 * integer(knobs, "unroll")
        moved = read + again + writes(knobs, size)
        return roofline_us(
            flops * rows * columns,
            moved,
            knobs,
            facts,
            chains=chains,
            largest=largest,
            dealt=dealt,
        )

    return _asking(model, "M", "N")


def model_heads(flops: float) -> Model:
    """Of an operator on pairs of elements of the heads of tokens, which share their angles.

    Args:
        flops: of an element.
    """

    def model(knobs: Knobs, facts: Facts) -> float:
        tokens, heads, pairs = facts["M"], facts["H"], facts["P"]
        size, threads = 2.0 * tokens * heads * pairs, count_threads(knobs, facts)
        width = facts.get(WIDTH, 4.0)
        dealt = _pieces(knobs, tokens, threads)
        moved = width * (size + 2 * tokens * pairs) + writes(knobs, width * size)
        chains = 2.0 * integer(knobs, "unroll") * float(knobs.get("group", 1))
        return roofline_us(
            flops * size, moved, knobs, facts, chains=chains, largest=1 / dealt, dealt=dealt
        )

    return _asking(model, "M", "H", "P")


def model_pieces(
    asked: str, work: Callable[[Knobs, Facts], tuple[float, float, float, float, float]]
) -> Model:
    """Of what is dealt in equal pieces.

    Args:
        asked: the axes that it follows from, a letter each.
        work: operations, elements that are read and that are written, pieces, and chains that are
            under way at once.
    """

    def model(knobs: Knobs, facts: Facts) -> float:
        if not {*asked, *ASKED} <= facts.keys():
            return math.nan
        flops, read, written, pieces, chains = work(knobs, facts)
        dealt = math.ceil(pieces / integer(knobs, "chunk")) if "chunk" in knobs else pieces
        width = facts.get(WIDTH, 4.0)
        return roofline_us(
            flops,
            width * read + writes(knobs, width * written),
            knobs,
            facts,
            chains=chains,
            largest=1.0 / max(1.0, dealt),
            dealt=0.0 if knobs.get("schedule") == "static" else dealt,
        )

    return model


def model_gather(width: str, flops: float, output: Sequence[str], *, by_row: bool) -> Model:
    """Of an operator that gathers a row of a dense operand for each entry of a CSR pattern.

    Args:
        width: the axis along which such rows lie; empty: they have one element.
        flops: of an entry and an element of its row.
        output: the axes of the output.
        by_row: rows are dealt, else equal shares of the entries.
    """

    def model(knobs: Knobs, facts: Facts) -> float:
        entries, rows, bytes_each = facts["nnz"], facts["M"], facts.get(WIDTH, 4.0)
        long = facts.get(width, 1.0)
        threads = count_threads(knobs, facts)
        result = bytes_each * math.prod(facts.get(axis, 1.0) for axis in output)
        operand = bytes_each * long * facts.get("K", 0.0)
        is_far = operand > CACHED_BYTES
        gathered = bytes_each * long * entries if is_far else operand
        moved = (4.0 + bytes_each) * entries + gathered + writes(knobs, result)
        lanes = facts["vector_bytes"] / (8.0 if knobs.get("vector") == "half" else 4.0)
        held = min(float(knobs.get("vectors", 1)), math.ceil(long / lanes))
        filled = long / (held * lanes * math.ceil(long / (held * lanes)))
        # Beside the products of an entry its index and its value are loaded.
        busy = filled * held / (held + 2.0)
        work = flops * entries * long / busy
        if is_far and not knobs.get("prefetch", 1):
            moved *= NOT_FETCHED
        largest, dealt = _share_of_rows(knobs, facts, rows, threads, by_row=by_row)
        chains = held * float(knobs.get("unroll", 1)) * float(knobs.get("group", 1))
        return roofline_us(
            work, moved, knobs, facts, chains=max(2.0, chains), largest=largest, dealt=dealt
        )

    return _asking(model, "M", "nnz")


def model_products(knobs: Knobs, facts: Facts) -> float:
    """Of a sparse product of sparse matrices: each of P products finds the place of its sum."""
    if not {"M", "nnz", "nnz_b", "nnz_c", "P", *ASKED} <= facts.keys():
        return math.nan
    moved = 8.0 * (facts["nnz"] + facts["nnz_b"] + facts["nnz_c"])
    threads = count_threads(knobs, facts)
    largest, dealt = _share_of_rows(knobs, facts, facts["M"], threads, by_row=True)
    work = PLACED_FLOPS * facts["P"]
    return roofline_us(work, moved, knobs, facts, largest=largest, dealt=dealt)


def _share_of_rows(
    knobs: Knobs, facts: Facts, rows: float, threads: float, *, by_row: bool
) -> tuple[float, float]:
    """Of all entries the largest share that one thread has by itself; and pieces that are dealt."""
    if not by_row:
        pieces = threads * integer(knobs, "pieces")
        return 1.0 / pieces, pieces
    pieces = _pieces(knobs, rows, threads)
    # The sum of so many rows deviates by their coefficient of variation over its root.
    spread = 1.0 + facts.get("cv_row", 0.0) / math.sqrt(max(1.0, rows / pieces))
    longest = facts.get("max_row", 0.0) / max(1.0, facts["nnz"])
    return max(longest, spread / pieces), pieces


def model_product(*, packs_a: bool) -> Model:
    """Of the dense product in tiles that registers hold."""

    def model(knobs: Knobs, facts: Facts) -> float:
        m, n, k = (facts[axis] for axis in "MNK")
        rows, vectors = integer(knobs, "rows"), integer(knobs, "vectors")
        lanes = facts["vector_bytes"] / (8.0 if knobs["vector"] == "half" else 4.0)
        products = rows * vectors
        # Two loads go beside two products: what a step loads is a row of B and a column of A.
        loads = vectors + rows * (1.0 if packs_a else 1.15)
        busy = min(1.0, products / loads) * products / (products + 1.0 / integer(knobs, "unroll"))
        across, down = vectors * lanes, float(rows)
        filled = (m / (math.ceil(m / down) * down)) * (n / (math.ceil(n / across) * across))
        work = 2.0 * m * n * k / (busy * filled)
        packed = 4.0 * k * n + (4.0 * m * k * math.ceil(n / integer(knobs, "nc")) if packs_a else 0)
        results = 4.0 * m * n * 2.0 * math.ceil(k / integer(knobs, "kc"))
        blocks = math.ceil(m / integer(knobs, "mc"))
        threads = count_threads(knobs, facts)
        largest = math.ceil(blocks / threads) / blocks
        moved = packed * 2.0 + results + facts.get(WIDTH, 4.0) * (m * k + k * n)
        return roofline_us(work, moved, knobs, facts, chains=products, largest=largest)

    return _asking(model, "M", "N", "K")
