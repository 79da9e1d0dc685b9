"""Sources of candidates for bias_gelu: one that is right, and a frame for those that are not."""

from __future__ import annotations

GELU = """
__device__ float gelu(float s) {
    return 0.5f * s * (1.0f + tanhf(0.7978845608f * (s + 0.044715f * s * s * s)));
}
"""


def source(body: str, **plan: object) -> str:
    """A candidate with one kernel `k(M, N, x, bias, y)`; `plan` changes its launch."""
    launch: dict[str, object] = {
        "kernel": '"k"',
        "grid": '["cdiv(M * N, 256)"]',
        "block": "[256]",
        "args": '["M", "N", "x", "bias", "y"]',
        **plan,
    }
    lines = "\n".join(f"{key} = {value}" for key, value in launch.items())
    head = f"/*---\n[[launch]]\n{lines}\n---*/\n"
    signature = "int M, int N, const float* x, const float* bias, float* y"
    return f'{head}{GELU}extern "C" __global__ void k({signature}) {{\n{body}\n}}\n'


INDEX = "const long i = (long)blockIdx.x * blockDim.x + threadIdx.x;\n"
HONEST = source(INDEX + "if (i < (long)M * N) y[i] = gelu(x[i] + bias[i % N]);")
