"""Right candidates for bias_gelu in each language, with room for a deed of theirs."""

from __future__ import annotations

from kernelwright.kernelbench.recipes import get

CPP = """
#include <cmath>
#include <cstdlib>
extern "C" void bias_gelu(int M, int N, const float* x, const float* bias, float* y) {
    for (long i = 0; i < (long)M * N; ++i) {
        const float s = x[i] + bias[i %% N];
        y[i] = 0.5f * s * (1.0f + std::tanh(0.7978845608f * (s + 0.044715f * s * s * s)));
    }
    %s
}
"""
PYTHON = """
import torch


def run(M, N, x, bias, y):
    y.copy_(torch.nn.functional.gelu(x + bias, approximate="tanh"))
"""
CUDA = """/*---
[[launch]]
kernel = "gelu"
grid = ["cdiv(M * N, 256)"]
block = [256]
args = ["M", "N", "x", "bias", "y"]
---*/
extern "C" __global__ void gelu(int M, int N, const float* x, const float* bias, float* y) {
    const long i = (long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= (long)M * N) return;
    const float v = x[i] + bias[i %% N];
    y[i] = 0.5f * v * (1.0f + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
    %s
}
"""


def triton(old: str = "", new: str = "") -> str:
    recipe = get("bias_gelu", "tiled", "triton")
    return recipe.render(recipe.first_knobs()).replace(old or "grid", new or "grid")
