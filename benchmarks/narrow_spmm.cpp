// For dense factors of a few columns: the lanes of a vector go along the entries of a row, and not
// along its columns.
#include <cstdint>
#include <omp.h>

namespace {

// One running sum of more terms than this loses digits.
constexpr int PART = 256;

inline float row_of_one(const int* indices, const float* values, int begin, int end,
                        const float* B) {
    double total = 0.0;
    for (int p = begin; p < end; p += 16 * PART) {
        const int last = end - p < 16 * PART ? end : p + 16 * PART;
        float sum = 0.0f;
        if (last - p < 16) {
            for (int q = p; q < last; ++q) sum += values[q] * B[indices[q]];
        } else {
            #pragma omp simd reduction(+ : sum)
            for (int q = p; q < last; ++q) sum += values[q] * B[indices[q]];
        }
        total += sum;
    }
    return float(total);
}

template <int W>
inline void columns(const int* indices, const float* values, int begin, int end, const float* B,
                    int64_t N, float* out) {
    float total[W] = {};
    for (int p = begin; p < end; p += PART) {
        const int last = end - p < PART ? end : p + PART;
        float sum[W] = {};
        for (int q = p; q < last; ++q) {
            const float* b = B + indices[q] * N;
            const float a = values[q];
            for (int n = 0; n < W; ++n) sum[n] += a * b[n];
        }
        for (int n = 0; n < W; ++n) total[n] += sum[n];
    }
    for (int n = 0; n < W; ++n) out[n] = total[n];
}

inline void row(const int* indices, const float* values, int begin, int end, const float* B,
                int64_t N, float* out) {
    if (N == 1) {
        out[0] = row_of_one(indices, values, begin, end, B);
        return;
    }
    int64_t n = 0;
    for (; n + 8 <= N; n += 8) columns<8>(indices, values, begin, end, B + n, N, out + n);
    for (; n + 4 <= N; n += 4) columns<4>(indices, values, begin, end, B + n, N, out + n);
    for (; n < N; ++n) columns<1>(indices, values, begin, end, B + n, N, out + n);
}

}  // namespace

extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C) {
    (void)K;
    const int threads = 2.0 * nnz * N + M < 4e5 ? 1 : omp_get_max_threads();
    #pragma omp parallel for schedule(dynamic, 256) num_threads(threads)
    for (int i = 0; i < M; ++i)
        row(indices, values, indptr[i], indptr[i + 1], B, N, C + int64_t(i) * N);
}
