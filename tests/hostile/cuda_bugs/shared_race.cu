/*---
language = "cuda"
[[launch]]
kernel = "spmv_blocks"
grid = ["M"]
block = [64]
args = ["indptr", "indices", "values", "x", "y"]
---*/
// All threads add to one word of shared memory, and none of them atomically.
extern "C" __global__ void spmv_blocks(const int* __restrict__ indptr,
                                       const int* __restrict__ indices,
                                       const float* __restrict__ values,
                                       const float* __restrict__ x, float* __restrict__ y) {
  __shared__ float total;
  if (threadIdx.x == 0) total = 0.0f;
  __syncthreads();
  float sum = 0.0f;
  for (int p = indptr[blockIdx.x] + threadIdx.x; p < indptr[blockIdx.x + 1]; p += 64)
    sum += values[p] * x[indices[p]];
  total += sum;  // right: atomicAdd(&total, sum);
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = total;
}
