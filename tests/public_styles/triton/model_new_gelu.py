"""A module whose forward calls a wrapper with checks, as benchmark answers are written."""

import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def bias_gelu_kernel(x_ptr, bias_ptr, out_ptr, n_elements, n_cols, BLOCK_SIZE: tl.constexpr):
    block_start = tl.program_id(0) * BLOCK_SIZE
    offsets = block_start + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    b = tl.load(bias_ptr + offsets % n_cols, mask=mask, other=0.0)
    z = x + b
    inner = 0.7978845608028654 * (z + 0.044715 * z * z * z)
    out = 0.5 * z * (1.0 + libdevice.tanh(inner))
    # Where the hyperbolic tangent is near -1 its sum with 1 has lost every digit.
    e = libdevice.exp(2.0 * inner)
    out = tl.where(inner < -0.5, z * (e / (1.0 + e)), out)
    tl.store(out_ptr + offsets, out, mask=mask)


def triton_bias_gelu(x: torch.Tensor, bias: torch.Tensor):
    assert x.is_cuda, "tensors must be on CUDA"
    assert bias.is_cuda, "tensors must be on CUDA"
    x = x.contiguous()
    bias = bias.contiguous()
    out = torch.empty_like(x)
    n_elements = x.numel()
    BLOCK_SIZE = 4096
    grid = lambda meta: ((n_elements + meta["BLOCK_SIZE"] - 1) // meta["BLOCK_SIZE"],)  # noqa: E731
    bias_gelu_kernel[grid](x, bias, out, n_elements, x.shape[-1], BLOCK_SIZE=BLOCK_SIZE)
    return out


class ModelNew(nn.Module):
    def __init__(self) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return triton_bias_gelu(x, bias)
