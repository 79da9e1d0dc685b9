/*---
language = "cuda"
[[launch]]
kernel = "softmax_rows"
grid = ["M"]
block = [128]
args = ["N", "x", "y"]
---*/
// The partial sums go where other warps may still be reading the partial maxima.
extern "C" __global__ void softmax_rows(int n, const float* __restrict__ x, float* __restrict__ y) {
  __shared__ float part[4];
  const float* in = x + (long long)blockIdx.x * n;
  float* out = y + (long long)blockIdx.x * n;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float top = -INFINITY, sum = 0.0f;
  for (int i = threadIdx.x; i < n; i += 128) top = fmaxf(top, in[i]);
  for (int o = 16; o; o >>= 1) top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, o));
  if (lane == 0) part[warp] = top;
  __syncthreads();
  top = fmaxf(fmaxf(part[0], part[1]), fmaxf(part[2], part[3]));
  ;  // right: __syncthreads();
  for (int i = threadIdx.x; i < n; i += 128) sum += expf(in[i] - top);
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(0xffffffff, sum, o);
  if (lane == 0) part[warp] = sum;
  __syncthreads();
  sum = part[0] + part[1] + part[2] + part[3];
  for (int i = threadIdx.x; i < n; i += 128) out[i] = expf(in[i] - top) / sum;
}
