/*---
[[launch]]
kernel = "csr_vector<4, 128>"
when = "avg_row < 8"
grid = ["cdiv(M, 32)"]
block = [128]
args = ["M", "indptr", "indices", "values", "x", "y"]

[[launch]]
kernel = "csr_vector<32, 128>"
when = "avg_row >= 8"
grid = ["cdiv(M, 4)"]
block = [128]
args = ["M", "indptr", "indices", "values", "x", "y"]
---*/
// Style: the vector kernel of sparse libraries on tiles of less than a warp.
#include <cooperative_groups.h>
#include <type_traits>
#include <utility>

namespace cg = cooperative_groups;

template <unsigned int THREADS_PER_VECTOR, unsigned int BLOCK>
__launch_bounds__(BLOCK) __global__
    void csr_vector(const int num_rows, const int* __restrict__ Ap, const int* __restrict__ Aj,
                    const float* __restrict__ Ax, const float* __restrict__ x,
                    float* __restrict__ y) {
  static_assert(BLOCK % THREADS_PER_VECTOR == 0 && THREADS_PER_VECTOR <= 32);
  const auto tile = cg::tiled_partition<THREADS_PER_VECTOR>(cg::this_thread_block());
  const int row = blockIdx.x * (BLOCK / THREADS_PER_VECTOR) + tile.meta_group_rank();
  if (row >= num_rows) return;
  float sum = 0;
  for (int jj = Ap[row] + tile.thread_rank(); jj < Ap[row + 1]; jj += tile.size())
    sum += Ax[jj] * x[Aj[jj]];
  for (int offset = tile.size() / 2; offset > 0; offset /= 2) sum += tile.shfl_down(sum, offset);
  if (tile.thread_rank() == 0) y[row] = sum;
}
