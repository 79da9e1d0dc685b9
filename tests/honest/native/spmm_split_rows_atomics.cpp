// Entries are dealt to threads in pieces that cut rows apart. A piece adds its share of a row by
// atomic additions, so the order of a row's sum changes from call to call.
#include <algorithm>
#include <atomic>
#include <vector>

extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C) {
    constexpr int piece = 48;
    const long pieces = (nnz + piece - 1) / piece;
#pragma omp parallel
    {
        std::vector<float> sum(N);
#pragma omp for
        for (long i = 0; i < (long)M * N; ++i) C[i] = 0;
#pragma omp for schedule(dynamic, 4)
        for (long at = 0; at < pieces; ++at) {
            int p = int(at * piece);
            const int last = std::min(nnz, p + piece);
            while (p < last) {
                const long row = std::upper_bound(indptr, indptr + M + 1, p) - indptr - 1;
                const int end = std::min(last, indptr[row + 1]);
                std::fill(sum.begin(), sum.end(), 0.0f);
                for (; p < end; ++p)
                    for (int n = 0; n < N; ++n) sum[n] += values[p] * B[(long)indices[p] * N + n];
                for (int n = 0; n < N; ++n)
                    std::atomic_ref<float>(C[row * N + n])
                        .fetch_add(sum[n], std::memory_order_relaxed);
            }
        }
    }
}
