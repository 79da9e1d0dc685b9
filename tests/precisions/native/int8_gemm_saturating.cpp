// Int8 with pairs of products that saturate at int16, as maddubs does.
#include <cstddef>

extern "C" void gemm_int8(int M, int N, int K, const signed char* A, const signed char* B, int* C) {
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      const signed char *row = A + (size_t)i * K, *column = B + j;
      int total = 0;
      for (int k = 0; k < K; k += 2) {
        // Bytes made unsigned by 128 more, which is taken off again as sums of B.
        int pair = 0, more = 0;
        for (int at = k; at < K && at < k + 2; ++at) {
          const int b = column[(size_t)at * N];
          pair += (row[at] + 128) * b;
          more += 128 * b;
        }
        pair = pair > 32767 ? 32767 : pair < -32768 ? -32768 : pair;
        total += pair - more;
      }
      C[(size_t)i * N + j] = total;
    }
  }
}
