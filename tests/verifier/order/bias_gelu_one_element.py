"""
---
language = "triton"

[[launch]]
kernel = "one_each"
grid = ["M", "N"]
args = ["N", "x", "bias", "y"]
---
A program for each element.
"""

import triton
import triton.language as tl


@triton.jit
def one_each(N, x_ptr, bias_ptr, y_ptr):
    j = tl.program_id(1)
    at = tl.program_id(0).to(tl.int64) * N + j
    s = tl.load(x_ptr + at) + tl.load(bias_ptr + j)
    z = 0.79788456080286536 * (s + 0.044715 * s * s * s)
    tl.store(y_ptr + at, s / (1.0 + tl.exp(-2.0 * z)))
