/*---
language = "cuda"
[[launch]]
kernel = "pool"
grid = ["M", "cdiv(N, 32)"]
block = [32]
args = ["N", "reduce", "indptr", "indices", "values", "B", "C"]
---*/
// A maximum that starts at 0 is wrong for rows whose products are all negative.
extern "C" __global__ void pool(int n, int reduce, const int* __restrict__ indptr,
                                const int* __restrict__ indices, const float* __restrict__ values,
                                const float* __restrict__ B, float* __restrict__ C) {
  const int row = blockIdx.x, column = blockIdx.y * 32 + threadIdx.x;
  if (column >= n) return;
  const int first = indptr[row], last = indptr[row + 1];
  float best = 0.0f;  // right: float best = reduce ? 0.0f : -INFINITY;
  for (int p = first; p < last; ++p) {
    const float product = values[p] * B[(long long)indices[p] * n + column];
    best = reduce ? best + product : fmaxf(best, product);
  }
  if (first == last) best = 0.0f;
  else if (reduce) best /= last - first;
  C[(long long)row * n + column] = best;
}
