/*---
language = "cuda"
[[launch]]
kernel = "rows"
grid = ["cdiv(M, 64)"]
block = [64]
args = ["M", "indptr", "indices", "values", "x", "y"]
---*/
// Threads beyond the last row look for its end.
extern "C" __global__ void rows(int m, const int* __restrict__ indptr,
                                const int* __restrict__ indices, const float* __restrict__ values,
                                const float* __restrict__ x, float* __restrict__ y) {
  const int row = blockIdx.x * 64 + threadIdx.x;
  const int first = indptr[row], last = indptr[row + 1];  // named
  float sum = 0.0f;
  for (int p = first; p < last; ++p) sum += values[p] * x[indices[p]];  // named
  if (row < m) y[row] = sum;
}
