/*---
[[launch]]
kernel = "gspmm::csr_reduce<gspmm::REDUCEOP::MAX>"
when = "reduce == 0"
grid = ["cdiv(M, 4)", "cdiv(N, 32)"]
block = [32, 4]
args = ["M", "N", "indptr", "indices", "values", "B", "C"]

[[launch]]
kernel = "gspmm::csr_reduce<gspmm::REDUCEOP::MEAN>"
when = "reduce == 1"
grid = ["cdiv(M, 4)", "cdiv(N, 32)"]
block = [32, 4]
args = ["M", "N", "indptr", "indices", "values", "B", "C"]
---*/
// Style: generalised SpMM: an enumeration, a structure of operations, if constexpr.
#pragma once
#include <cuda_runtime.h>
#include <limits>

namespace gspmm {

enum class REDUCEOP : int { SUM, MAX, MIN, MEAN };

template <typename DType, REDUCEOP Reduce>
struct Reducer {
  static constexpr __host__ __device__ DType init() {
    if constexpr (Reduce == REDUCEOP::MAX) return std::numeric_limits<DType>::lowest();
    if constexpr (Reduce == REDUCEOP::MIN) return std::numeric_limits<DType>::max();
    return DType(0);
  }
  static __device__ __forceinline__ void update(DType& acc, DType val) {
    if constexpr (Reduce == REDUCEOP::MAX) {
      acc = ::max(acc, val);
    } else if constexpr (Reduce == REDUCEOP::MIN) {
      acc = ::min(acc, val);
    } else {
      acc += val;
    }
  }
  static __device__ __forceinline__ DType finish(DType acc, int count) {
    if (count == 0) return DType(0);
    if constexpr (Reduce == REDUCEOP::MEAN) return acc / count;
    return acc;
  }
};

template <REDUCEOP Reduce>
__global__ void csr_reduce(const int nrow, const int feature_dim, const int* __restrict__ rowptr,
                           const int* __restrict__ col, const float* __restrict__ edge,
                           const float* __restrict__ in, float* __restrict__ out) {
  using R = Reducer<float, Reduce>;
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  const int feature = blockIdx.y * 32 + threadIdx.x;
  if (row >= nrow || feature >= feature_dim) return;
  const int begin = rowptr[row], end = rowptr[row + 1];
  float acc = begin < end && Reduce == REDUCEOP::MAX ? -INFINITY : R::init();
  for (int p = begin; p < end; ++p)
    R::update(acc, edge[p] * in[static_cast<int64_t>(col[p]) * feature_dim + feature]);
  out[static_cast<int64_t>(row) * feature_dim + feature] = R::finish(acc, end - begin);
}

}  // namespace gspmm
