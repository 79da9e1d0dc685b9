"""
---
language = "triton"

[knobs]
ENTRIES = 64

[[launch]]
zero = "C"

[[launch]]
kernel = "scatter"
grid = ["cdiv(nnz, ENTRIES)", "cdiv(N, 32)"]
args = ["indptr", "indices", "values", "B", "C", "M", "N", "nnz"]
constexpr = {ENTRIES = "ENTRIES", STEPS = 32}
when = "nnz > 0"
---
"""

import triton
import triton.language as tl


@triton.jit
def scatter(
    indptr_ptr,
    indices_ptr,
    values_ptr,
    B_ptr,
    C_ptr,
    M,
    N,
    nnz,
    ENTRIES: tl.constexpr,
    STEPS: tl.constexpr,
):
    entry = tl.program_id(0) * ENTRIES + tl.arange(0, ENTRIES)
    column = tl.program_id(1) * 32 + tl.arange(0, 32)[None, :]
    inside = entry < nnz
    low = tl.zeros((ENTRIES,), tl.int32)
    high = low + M
    for _ in range(STEPS):
        middle = (low + high) // 2
        is_before = tl.load(indptr_ptr + middle, mask=inside, other=0) <= entry
        is_open = high - low > 1
        low = tl.where(is_open & is_before, middle, low)
        high = tl.where(is_open & (is_before == 0), middle, high)
    weight = tl.load(values_ptr + entry, mask=inside, other=0.0)
    source = tl.load(indices_ptr + entry, mask=inside, other=0).to(tl.int64)
    both = inside[:, None] & (column < N)
    b = tl.load(B_ptr + source[:, None] * N + column, mask=both, other=0.0)
    tl.atomic_add(C_ptr + low.to(tl.int64)[:, None] * N + column, weight[:, None] * b, mask=both)
