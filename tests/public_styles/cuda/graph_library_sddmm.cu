/*---
[[launch]]
kernel = "dgl::SDDMMCsrKernel<int32_t, float, dgl::binary::Dot<float>>"
when = "nnz > 0"
grid = ["min(cdiv(nnz, 8), 65535)"]
block = [32, 8]
args = ["U", "V", "E", "indptr", "indices", "M", "nnz", "D"]
---*/
// Style: the graph library's SDDMM, index and value types and the operator as template parameters.
#include <cuda_runtime.h>
#include <cstdint>
#include <string>
#include <vector>

namespace dgl {
namespace binary {

template <typename DType>
struct Dot {
  static constexpr bool use_lhs = true;
  static constexpr bool use_rhs = true;
  static constexpr bool reduce_last_dim = true;
  static __device__ __forceinline__ DType Call(const DType *lhs, const DType *rhs, int64_t len,
                                               int64_t lane, int64_t step) {
    DType rst = static_cast<DType>(0.0f);
    for (int64_t i = lane; i < len; i += step) {
      rst += lhs[i] * rhs[i];
    }
    return rst;
  }
};

}  // namespace binary

template <typename Idx, typename DType, typename BinaryOp>
__global__ void SDDMMCsrKernel(const DType *__restrict__ lhs, const DType *__restrict__ rhs,
                               DType *__restrict__ out, const Idx *__restrict__ indptr,
                               const Idx *__restrict__ indices, int64_t N, int64_t E,
                               int64_t reduce_size) {
  Idx ty = blockIdx.x * static_cast<Idx>(blockDim.y) + threadIdx.y;
  const Idx stride_y = blockDim.y * gridDim.x;
  while (ty < E) {
    Idx lo = 0, hi = N;
    while (lo < hi) {
      const Idx mid = lo + (hi - lo) / 2;
      if (__ldg(indptr + mid + 1) <= ty) {
        lo = mid + 1;
      } else {
        hi = mid;
      }
    }
    const Idx src = lo;
    const Idx dst = __ldg(indices + ty);
    const DType *lhsoff = BinaryOp::use_lhs ? (lhs + src * reduce_size) : nullptr;
    const DType *rhsoff = BinaryOp::use_rhs ? (rhs + dst * reduce_size) : nullptr;
    DType val = BinaryOp::Call(lhsoff, rhsoff, reduce_size, threadIdx.x, 32);
    for (int offset = 16; offset > 0; offset /= 2)
      val += __shfl_down_sync(0xffffffffu, val, offset);
    if (threadIdx.x == 0) out[ty] = val;
    ty += stride_y;
  }
}

}  // namespace dgl
