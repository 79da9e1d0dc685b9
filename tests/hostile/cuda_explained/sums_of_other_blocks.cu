/*---
language = "cuda"
[[launch]]
kernel = "rows"
grid = ["M", 2]
block = [32]
args = ["indptr", "indices", "values", "x", "y", "parts"]
[scratch.parts]
dtype = "float32"
shape = [64]
---*/
// The first block of a row reads what the second one leaves, of which nobody knows when it runs.
extern "C" __global__ void rows(const int* __restrict__ indptr, const int* __restrict__ indices,
                                const float* __restrict__ values, const float* __restrict__ x,
                                float* __restrict__ y, float* parts) {
  float sum = 0.0f;
  for (int p = indptr[blockIdx.x] + blockIdx.y * 32 + threadIdx.x; p < indptr[blockIdx.x + 1]; p += 64)
    sum += values[p] * x[indices[p]];
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  if (threadIdx.x) return;
  if (blockIdx.y) parts[blockIdx.x % 64] = sum;  // named
  else y[blockIdx.x] = sum + parts[blockIdx.x % 64];  // named
}
