"""Softmax over the edges of each destination, a program for each node and head."""

import torch
import triton
import triton.language as tl


@triton.jit
def edge_softmax_kernel(indptr, e_ptr, out_ptr, H, BLOCK: tl.constexpr):
    node = tl.program_id(0)
    head = tl.program_id(1)
    start = tl.load(indptr + node)
    end = tl.load(indptr + node + 1)
    offs = tl.arange(0, BLOCK)
    m = -float("inf")
    for p in range(start, end, BLOCK):
        v = tl.load(e_ptr + (p + offs) * H + head, mask=p + offs < end, other=-float("inf"))
        m = tl.maximum(m, tl.max(v, 0))
    s = 0.0
    for p in range(start, end, BLOCK):
        v = tl.load(e_ptr + (p + offs) * H + head, mask=p + offs < end, other=-float("inf"))
        s += tl.sum(tl.exp(v - m), 0)
    for p in range(start, end, BLOCK):
        mask = p + offs < end
        v = tl.load(e_ptr + (p + offs) * H + head, mask=mask, other=-float("inf"))
        tl.store(out_ptr + (p + offs) * H + head, tl.exp(v - m) / s, mask=mask)


def run(indptr, e):
    out = torch.empty_like(e)
    nodes, heads = indptr.numel() - 1, e.shape[1]
    edge_softmax_kernel[(nodes, heads)](indptr, e, out, heads, BLOCK=64)
    return out
