/*---
[[launch]]
zero = "C"

[[launch]]
kernel = "spmm_scatter<float>"
when = "nnz > 0"
grid = ["cdiv(nnz * N, 256)"]
block = [256]
args = ["indptr", "indices", "values", "B", "C", "M", "N", "nnz"]
---*/
// Style: PyTorch Geometric's scatter: a thread for each entry and feature adds into its row.
#include <ATen/cuda/CUDAContext.h>
#include <torch/extension.h>
#include <vector>

#define THREADS 256
#define BLOCKS(N) (N + THREADS - 1) / THREADS
#define CHECK_CUDA(x) AT_ASSERTM(x.device().is_cuda(), #x " must be CUDA tensor")

template <typename scalar_t>
static inline __device__ void atomAdd(scalar_t *address, scalar_t val) {
  atomicAdd(address, val);
}

static inline __device__ int64_t row_of(const int *rowptr, int64_t rows, int64_t e) {
  int64_t lo = 0, hi = rows - 1;
  while (lo < hi) {
    const int64_t mid = (lo + hi) / 2;
    if (rowptr[mid + 1] <= e) lo = mid + 1; else hi = mid;
  }
  return lo;
}

template <typename scalar_t>
__global__ void spmm_scatter(const int *__restrict__ rowptr, const int *__restrict__ col,
                             const scalar_t *__restrict__ value, const scalar_t *__restrict__ src,
                             scalar_t *__restrict__ out, int64_t M, int64_t K, int64_t E) {
  int64_t thread_idx = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  int64_t e = thread_idx / K, k = thread_idx % K;
  if (e < E) {
    atomAdd(out + row_of(rowptr, M, e) * K + k, value[e] * src[(int64_t)col[e] * K + k]);
  }
}
