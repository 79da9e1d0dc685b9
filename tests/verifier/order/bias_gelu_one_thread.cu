/*---
language = "cuda"

[[launch]]
kernel = "one_each"
grid = ["N", "M"]
block = [1]
args = ["M", "N", "x", "bias", "y"]
---*/
// A block of one thread: 31 of 32 lanes have nothing to do.
extern "C" __global__ void one_each(
    int M, int N, const float* x, const float* bias, float* y) {
    const size_t at = (size_t)blockIdx.y * N + blockIdx.x;
    const float s = x[at] + bias[blockIdx.x];
    const float z = 0.7978845608f * (s + 0.044715f * s * s * s);
    y[at] = s / (1.0f + expf(-2.0f * z));
}
