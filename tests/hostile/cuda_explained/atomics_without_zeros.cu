/*---
language = "cuda"
[[launch]]
kernel = "entries"
grid = ["M", 2]
block = [32]
args = ["indptr", "indices", "values", "x", "y"]
---*/
// What is added to was never set.
extern "C" __global__ void entries(const int* __restrict__ indptr, const int* __restrict__ indices,
                                   const float* __restrict__ values, const float* __restrict__ x,
                                   float* __restrict__ y) {
  float sum = 0.0f;
  for (int p = indptr[blockIdx.x] + blockIdx.y * 32 + threadIdx.x; p < indptr[blockIdx.x + 1]; p += 64)
    sum += values[p] * x[indices[p]];
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  if (threadIdx.x == 0) atomicAdd(&y[blockIdx.x], sum);  // named
}
