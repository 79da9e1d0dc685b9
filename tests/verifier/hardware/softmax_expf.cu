/*---
language = "cuda"

[[launch]]
kernel = "softmax"
grid = ["M"]
block = [32]
args = ["N", "x", "y"]
---*/
constexpr float LOG2_E = 1.4426950408889634f;

extern "C" __global__ void softmax(int N, const float* __restrict__ x, float* __restrict__ y) {
    const long long at = (long long)blockIdx.x * N;
    float top = -3.402823466e38f;
    for (int j = threadIdx.x; j < N; j += 32) top = fmaxf(top, x[at + j]);
    for (int step = 16; step > 0; step /= 2)
        top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, step));
    float sum = 0.0f;
    for (int j = threadIdx.x; j < N; j += 32) sum += __expf(x[at + j] - top);
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
    for (int j = threadIdx.x; j < N; j += 32) y[at + j] = __expf(x[at + j] - top) / sum;
}
