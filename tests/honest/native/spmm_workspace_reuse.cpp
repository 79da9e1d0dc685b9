// Keeps a workspace from call to call. It grows when a call needs more and holds nothing that a
// later call reads before writing it.
#include <cstring>
#include <vector>

static std::vector<float> workspace;

extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C) {
    if (workspace.size() < 2ul * N) workspace.resize(2ul * N);
    float* even = workspace.data();
    float* odd = even + N;
    for (int i = 0; i < M; ++i) {
        std::memset(even, 0, 2 * sizeof(float) * N);
        int p = indptr[i];
        for (; p + 1 < indptr[i + 1]; p += 2)
            for (int n = 0; n < N; ++n) {
                even[n] += values[p] * B[(long)indices[p] * N + n];
                odd[n] += values[p + 1] * B[(long)indices[p + 1] * N + n];
            }
        if (p < indptr[i + 1])
            for (int n = 0; n < N; ++n) even[n] += values[p] * B[(long)indices[p] * N + n];
        for (int n = 0; n < N; ++n) C[(long)i * N + n] = even[n] + odd[n];
    }
}
