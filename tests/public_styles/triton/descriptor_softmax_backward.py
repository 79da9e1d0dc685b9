"""The backward pass of a softmax with tensor descriptors where rows allow them."""

import torch
import triton
import triton.language as tl


@triton.jit
def backward(y_ptr, dy_ptr, dx_ptr, M, N, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0) * ROWS
    y_desc = tl.make_tensor_descriptor(y_ptr, [M, N], [N, 1], [ROWS, BLOCK])
    dy_desc = tl.make_tensor_descriptor(dy_ptr, [M, N], [N, 1], [ROWS, BLOCK])
    dx_desc = tl.make_tensor_descriptor(dx_ptr, [M, N], [N, 1], [ROWS, BLOCK])
    total = tl.zeros((ROWS,), tl.float32)
    for start in range(0, N, BLOCK):
        total += tl.sum(y_desc.load([first, start]) * dy_desc.load([first, start]), 1)
    for start in range(0, N, BLOCK):
        y = y_desc.load([first, start])
        dy = dy_desc.load([first, start])
        dx_desc.store([first, start], y * (dy - total[:, None]))


@triton.jit
def backward_plain(y_ptr, dy_ptr, dx_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        y = tl.load(y_ptr + row * N + at, mask=at < N, other=0.0)
        total += y * tl.load(dy_ptr + row * N + at, mask=at < N, other=0.0)
    whole = tl.sum(total, 0)
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        y = tl.load(y_ptr + row * N + at, mask=at < N, other=0.0)
        dy = tl.load(dy_ptr + row * N + at, mask=at < N, other=0.0)
        tl.store(dx_ptr + row * N + at, y * (dy - whole), mask=at < N)


def run(y, dy):
    dx = torch.empty_like(y)
    M, N = y.shape
    if N % 4 == 0:
        triton.set_allocator(
            lambda size, _align, _stream: torch.empty(size, device="cuda", dtype=torch.int8)
        )
        backward[(triton.cdiv(M, 8),)](y, dy, dx, M, N, ROWS=8, BLOCK=128)
    else:
        backward_plain[(M,)](y, dy, dx, N, BLOCK=min(1024, triton.next_power_of_2(N)))
    return dx
