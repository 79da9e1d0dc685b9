// Copies the rows of V that a block of entries needs into one contiguous buffer while it asks for
// the rows of the next block, then works on the copies only.
#include <algorithm>
#include <cstring>
#include <vector>

extern "C" void sddmm_csr(int M, int K, int D, int nnz, const int* indptr, const int* indices,
                          const float* U, const float* V, float* E) {
    constexpr int block = 32;
    std::vector<float> copies((long)block * D);
    for (int i = 0; i < M; ++i)
        for (int first = indptr[i]; first < indptr[i + 1]; first += block) {
            const int count = std::min(block, indptr[i + 1] - first);
            for (int j = 0; j < count; ++j) {
                const int ahead = std::min(first + j + block, nnz - 1);
                __builtin_prefetch(V + (long)indices[ahead] * D);
                std::memcpy(&copies[(long)j * D], V + (long)indices[first + j] * D,
                            sizeof(float) * D);
            }
            for (int j = 0; j < count; ++j) {
                float sum = 0;
                for (int d = 0; d < D; ++d) sum += U[(long)i * D + d] * copies[(long)j * D + d];
                E[first + j] = sum;
            }
        }
}
