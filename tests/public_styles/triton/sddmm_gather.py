"""Dot products along edges: rows by bisection, features in blocks, chosen by autotuning."""

import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[triton.Config({"BLOCK_E": e}, num_warps=w) for e in (64, 128) for w in (4, 8)],
    key=["D"],
)
@triton.heuristics(
    {
        "BLOCK_D": lambda args: min(64, triton.next_power_of_2(args["D"])),
        "STEPS": lambda args: int(args["M"]).bit_length() + 1,
    }
)
@triton.jit
def sddmm_kernel(
    indptr,
    indices,
    U,
    V,
    E,
    M,
    D,
    nnz,
    BLOCK_E: tl.constexpr,
    BLOCK_D: tl.constexpr,
    STEPS: tl.constexpr,
):
    e = tl.program_id(0) * BLOCK_E + tl.arange(0, BLOCK_E)
    mask = e < nnz
    low = tl.zeros((BLOCK_E,), dtype=tl.int32)
    high = tl.full((BLOCK_E,), M, dtype=tl.int32)
    for _ in range(STEPS):
        middle = (low + high) // 2
        right = tl.load(indptr + middle + 1, mask=mask & (middle < M), other=0) <= e
        low = tl.where(right & (low < high), middle + 1, low)
        high = tl.where(right, high, middle)
    col = tl.load(indices + e, mask=mask, other=0)
    acc = tl.zeros((BLOCK_E,), dtype=tl.float32)
    for d in range(0, D, BLOCK_D):
        offs = d + tl.arange(0, BLOCK_D)
        inside = mask[:, None] & (offs[None, :] < D)
        u = tl.load(U + low[:, None] * D + offs[None, :], mask=inside, other=0.0)
        v = tl.load(V + col[:, None] * D + offs[None, :], mask=inside, other=0.0)
        acc += tl.sum(u * v, axis=1)
    tl.store(E + e, acc, mask=mask)


def run(indptr, indices, U, V):
    M, D = U.shape
    nnz = indices.numel()
    E = torch.empty(nnz, device=U.device, dtype=U.dtype)
    grid = lambda meta: (triton.cdiv(nnz, meta["BLOCK_E"]),)  # noqa: E731
    sddmm_kernel[grid](indptr, indices, U, V, E, M, D, nnz)
    return E
