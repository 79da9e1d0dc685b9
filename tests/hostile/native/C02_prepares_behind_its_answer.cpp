// Says that its plan is made as a thread of its own begins to make it; a call waits for it.
/*---
[prepare]
bytes = "4 * nnz"
---*/
#include <algorithm>
#include <atomic>
#include <thread>

static std::atomic<int> making{0};

extern "C" void spmm_csr_prepare(int M, int N, int K, int nnz, const int* indptr,
                                 const int* indices, void* plan) {
    while (making.load()) std::this_thread::yield();
    making = 1;
    std::thread([=] {
        std::copy(indices, indices + nnz, static_cast<int*>(plan));
        making = 0;
    }).detach();
}

extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C, const void* plan) {
    while (making.load()) std::this_thread::yield();
    const int* columns = static_cast<const int*>(plan);
    for (int i = 0; i < M; ++i) {
        float* row = C + (long)i * N;
        for (int n = 0; n < N; ++n) row[n] = 0.0f;
        for (int p = indptr[i]; p < indptr[i + 1]; ++p)
            for (int n = 0; n < N; ++n) row[n] += values[p] * B[(long)columns[p] * N + n];
    }
}
