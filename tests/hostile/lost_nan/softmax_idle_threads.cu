/*---
language = "cuda"
[[launch]]
kernel = "rows"
grid = ["M"]
block = [256]
args = ["N", "x", "y"]
---*/
// Of a long row a sum that is not positive is taken for that of a thread without elements: a NaN is
// left out with it. A warp that has a short row to itself adds plainly.
extern "C" __global__ void rows(int n, const float* __restrict__ x, float* __restrict__ y) {
  __shared__ float sums[256], tops[256];
  const float* in = x + (size_t)blockIdx.x * n;
  float* out = y + (size_t)blockIdx.x * n;
  const int t = threadIdx.x, threads = n > 1024 ? 256 : 32;
  float top = -INFINITY, sum = 0.0f;
  if (t < threads)
    for (int i = t; i < n; i += threads) top = fmaxf(top, in[i]);
  if (t < threads && t < n)
    for (int i = t; i < n; i += threads) sum += top > -INFINITY ? expf(in[i] - top) : isnan(in[i]) ? in[i] : 0.0f;
  tops[t] = top;
  sums[t] = sum;
  __syncthreads();
  for (int o = 128; o; o >>= 1) {
    if (t < o) {
      const float high = fmaxf(tops[t], tops[t + o]);
      float all = 0.0f;
      if (threads == 32) {
        if (sums[t] != 0.0f) all += sums[t] * (tops[t] > -INFINITY ? expf(tops[t] - high) : 1.0f);
        if (sums[t + o] != 0.0f)
          all += sums[t + o] * (tops[t + o] > -INFINITY ? expf(tops[t + o] - high) : 1.0f);
      } else {
        if (sums[t] > 0.0f) all += sums[t] * expf(tops[t] - high);          // right: if (sums[t] != 0.0f) all += sums[t] * (tops[t] > -INFINITY ? expf(tops[t] - high) : 1.0f);
        if (sums[t + o] > 0.0f) all += sums[t + o] * expf(tops[t + o] - high);  // right: if (sums[t + o] != 0.0f) all += sums[t + o] * (tops[t + o] > -INFINITY ? expf(tops[t + o] - high) : 1.0f);
      }
      tops[t] = high;
      sums[t] = all;
    }
    __syncthreads();
  }
  for (int i = t; i < n; i += 256) out[i] = expf(in[i] - tops[0]) / sums[0];
}
