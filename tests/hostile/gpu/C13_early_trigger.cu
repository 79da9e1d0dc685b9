/*---
[[launch]]
kernel = "early"
grid   = ["cdiv(M * N, 256)"]
block  = [256]
args   = ["M", "N", "x", "bias", "y"]
---*/
// Says that what depends on it may start, and works on afterwards.
__device__ float gelu(float s) {
    return 0.5f * s * (1.0f + tanhf(0.7978845608f * (s + 0.044715f * s * s * s)));
}

extern "C" __global__ void early(int M, int N, const float* x, const float* bias, float* y) {
    asm volatile("griddepcontrol.launch_dependents;");
    const long i = (long)blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)); while (now - start < 100000);
    if (i < (long)M * N) y[i] = gelu(x[i] + bias[i % N]);
}
