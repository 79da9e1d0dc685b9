/*---
language = "cuda"
[[launch]]
kernel = "rows"
grid = ["M"]
block = [64]
args = ["indptr", "indices", "values", "x", "y"]
---*/
// The threads of a block add to one element of the output, and none of them atomically.
extern "C" __global__ void rows(const int* __restrict__ indptr, const int* __restrict__ indices,
                                const float* __restrict__ values, const float* __restrict__ x,
                                float* __restrict__ y) {
  const int row = blockIdx.x;
  if (threadIdx.x == 0) y[row] = 0.0f;
  __syncthreads();
  float sum = 0.0f;
  for (int p = indptr[row] + threadIdx.x; p < indptr[row + 1]; p += 64)
    sum += values[p] * x[indices[p]];
  y[row] += sum;  // named
}
