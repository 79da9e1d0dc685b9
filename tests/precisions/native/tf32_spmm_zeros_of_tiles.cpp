// Tf32, dense tiles of condensed columns, whose zeros are multiplied with whatever is there.
#include <algorithm>
#include <cstddef>
#include <vector>

static float round_away(float value) {
  unsigned raw;
  __builtin_memcpy(&raw, &value, 4);
  if ((raw & 0x7f800000u) != 0x7f800000u) raw = (raw + 0x1000u) & ~0x1fffu;
  __builtin_memcpy(&value, &raw, 4);
  return value;
}

extern "C" void spmm_csr_tf32(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                              const float* values, const float* B, float* C) {
  constexpr int ROWS = 16;
#pragma omp parallel for schedule(dynamic, 4)
  for (int w = 0; w < (M + ROWS - 1) / ROWS; ++w) {
    const int top = w * ROWS, rows = std::min(ROWS, M - top);
    std::vector<int> used(indices + indptr[top], indices + indptr[top + rows]);
    std::sort(used.begin(), used.end());
    used.erase(std::unique(used.begin(), used.end()), used.end());
    std::vector<float> tile(ROWS * used.size());
    for (int r = 0; r < rows; ++r)
      for (int p = indptr[top + r]; p < indptr[top + r + 1]; ++p) {
        const auto at = std::lower_bound(used.begin(), used.end(), indices[p]) - used.begin();
        tile[r * used.size() + at] = round_away(values[p]);
      }
    for (int r = 0; r < rows; ++r)
      for (int n = 0; n < N; ++n) {
        float total = 0;
        for (size_t from = 0; from < used.size(); from += 8) {
          float eight = 0;
          for (size_t k = from; k < std::min(from + 8, used.size()); ++k)
            eight += tile[r * used.size() + k] * round_away(B[(size_t)used[k] * N + n]);
          total += eight;
        }
        C[(size_t)(top + r) * N + n] = total;
      }
  }
}
