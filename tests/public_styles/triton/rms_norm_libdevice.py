"""Root-mean-square normalisation with the library's rsqrt, settings from the width, on a device."""

import operator

import torch
import triton
import triton.language as tl

try:
    from triton.language.extra.libdevice import rsqrt
except ModuleNotFoundError:
    from triton.language.extra.cuda.libdevice import rsqrt


def calculate_settings(n):
    block = triton.next_power_of_2(n)
    num_warps = 4
    if block >= 32768:
        num_warps = 32
    elif block >= 8192:
        num_warps = 16
    elif block >= 2048:
        num_warps = 8
    return block, num_warps


@triton.jit
def _rms_norm_forward_kernel(
    Y_ptr,
    Y_row_stride,
    X_ptr,
    X_row_stride,
    W_ptr,
    RSTD_ptr,
    n_cols,
    eps,
    offset,
    BLOCK_SIZE: tl.constexpr,
):
    row_idx = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK_SIZE)
    mask = col < n_cols
    y_base = Y_ptr + row_idx * Y_row_stride
    x_base = X_ptr + row_idx * X_row_stride
    X_row = tl.load(x_base + col, mask=mask, other=0)
    W_row = tl.load(W_ptr + col, mask=mask, other=0)
    mean_square = tl.sum(X_row * X_row, axis=0) / n_cols
    rstd = rsqrt(mean_square + eps)
    tl.store(RSTD_ptr + row_idx, rstd)
    Y_row = X_row * rstd * (offset + W_row)
    tl.store(y_base + col, Y_row, mask=mask)


def run(x, gamma):
    shape = x.shape
    dim = shape[-1]
    x = x.view(-1, dim)
    n_rows, n_cols = x.shape
    block, num_warps = calculate_settings(n_cols)
    y = torch.empty((n_rows, n_cols), dtype=x.dtype, device=x.device)
    rstd = torch.empty(n_rows, dtype=torch.float32, device=x.device)
    assert operator.eq(x.shape[1], gamma.shape[0]), "incompatible hidden size"
    with torch.cuda.device(x.device):
        _rms_norm_forward_kernel[(n_rows,)](
            y,
            y.stride(0),
            x,
            x.stride(0),
            gamma,
            rstd,
            n_cols,
            1e-6,
            0.0,
            BLOCK_SIZE=block,
            num_warps=num_warps,
        )
    return y.view(*shape)
