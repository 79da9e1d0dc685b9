/*---
language = "cuda"
[[launch]]
kernel = "rows"
grid = ["M"]
block = [128]
args = ["indptr", "indices", "values", "x", "y"]
---*/
// Nobody sets the sum to zero.
extern "C" __global__ void rows(const int* __restrict__ indptr, const int* __restrict__ indices,
                                const float* __restrict__ values, const float* __restrict__ x,
                                float* __restrict__ y) {
  __shared__ float total;
  const int row = blockIdx.x;
  float sum = 0.0f;
  for (int p = indptr[row] + threadIdx.x; p < indptr[row + 1]; p += 128)
    sum += values[p] * x[indices[p]];
  atomicAdd(&total, sum);  // named
  __syncthreads();
  if (threadIdx.x == 0) y[row] = total;  // named
}
