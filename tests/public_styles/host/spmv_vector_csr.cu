// CSR SpMV, "vector" kernel: VECTOR_SIZE lanes share a row.
// VECTOR_SIZE is chosen from the mean number of non-zeros of a row.
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>

namespace sparse {

namespace detail {

constexpr unsigned kFullMask = 0xffffffffu;

template <typename Index, typename Value, int ROWS_PER_BLOCK, int VECTOR_SIZE>
__launch_bounds__(ROWS_PER_BLOCK * VECTOR_SIZE, 1)
__global__ void spmv_csr_vector_kernel(const Index num_rows,
                                       const Index* __restrict__ Ap,
                                       const Index* __restrict__ Aj,
                                       const Value* __restrict__ Ax,
                                       const Value* __restrict__ x,
                                       Value* __restrict__ y)
{
  const Index vector_lane = threadIdx.x & (VECTOR_SIZE - 1);
  const Index vector_id   = blockIdx.x * ROWS_PER_BLOCK + threadIdx.x / VECTOR_SIZE;
  const Index num_vectors = ROWS_PER_BLOCK * gridDim.x;

  // every lane of the warp makes the same number of turns, so that the shuffles are safe
  const Index turns = (num_rows + num_vectors - 1) / num_vectors;
  for (Index t = 0; t < turns; ++t)
  {
    const Index row = vector_id + t * num_vectors;
    Value sum = Value(0);
    if (row < num_rows)
    {
      const Index row_end = Ap[row + 1];
      for (Index jj = Ap[row] + vector_lane; jj < row_end; jj += VECTOR_SIZE)
        sum += Ax[jj] * x[Aj[jj]];
    }
    #pragma unroll
    for (int delta = VECTOR_SIZE >> 1; delta > 0; delta >>= 1)
      sum += __shfl_down_sync(kFullMask, sum, delta, VECTOR_SIZE);
    if (row < num_rows && vector_lane == 0)
      y[row] = sum;
  }
}

template <int VECTOR_SIZE, typename Index, typename Value>
void dispatch(Index num_rows, const Index* Ap, const Index* Aj, const Value* Ax,
              const Value* x, Value* y, cudaStream_t stream)
{
  constexpr int THREADS_PER_BLOCK = 128;
  constexpr int VECTORS_PER_BLOCK = THREADS_PER_BLOCK / VECTOR_SIZE;
  constexpr int MAX_BLOCKS = 32768;

  int num_blocks = (num_rows + VECTORS_PER_BLOCK - 1) / VECTORS_PER_BLOCK;
  if (num_blocks > MAX_BLOCKS) num_blocks = MAX_BLOCKS;

  spmv_csr_vector_kernel<Index, Value, VECTORS_PER_BLOCK, VECTOR_SIZE>
      <<<num_blocks, THREADS_PER_BLOCK, 0, stream>>>(num_rows, Ap, Aj, Ax, x, y);
}

} // namespace detail

template <typename Index, typename Value>
void spmv_csr(Index num_rows, Index num_entries,
              const Index* Ap, const Index* Aj, const Value* Ax,
              const Value* x, Value* y, cudaStream_t stream)
{
  if (num_rows == 0) return;
  const Index nnz_per_row = num_entries / num_rows;

  if      (nnz_per_row <=  2) detail::dispatch< 2>(num_rows, Ap, Aj, Ax, x, y, stream);
  else if (nnz_per_row <=  4) detail::dispatch< 4>(num_rows, Ap, Aj, Ax, x, y, stream);
  else if (nnz_per_row <=  8) detail::dispatch< 8>(num_rows, Ap, Aj, Ax, x, y, stream);
  else if (nnz_per_row <= 16) detail::dispatch<16>(num_rows, Ap, Aj, Ax, x, y, stream);
  else                        detail::dispatch<32>(num_rows, Ap, Aj, Ax, x, y, stream);

  const cudaError_t status = cudaPeekAtLastError();
  if (status != cudaSuccess)
    throw std::runtime_error(std::string("spmv_csr: ") + cudaGetErrorString(status));
}

} // namespace sparse

void launch_spmv_csr_f32(const int* indptr, const int* indices, const float* values,
                         const float* x, float* y, int M, int nnz, cudaStream_t stream)
{
  sparse::spmv_csr<int, float>(M, nnz, indptr, indices, values, x, y, stream);
}
