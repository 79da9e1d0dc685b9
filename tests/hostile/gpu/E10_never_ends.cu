/*---
[[launch]]
kernel = "hang"
grid   = ["cdiv(M * N, 256)"]
block  = [256]
args   = ["M", "N", "x", "bias", "y"]
---*/
// Never ends; without a display no watchdog of the driver stops it.
extern "C" __global__ void hang(int M, int N, const float* x, const float* bias, float* y) {
    while (((volatile float*)y)[0] != 12345.0f) {
    }
}
