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
    for (volatile int wait = 0; wait < 1000000; wait = wait + 1) {
    }
    if (i < (long)M * N) y[i] = gelu(x[i] + bias[i % N]);
}
