// Each thread keeps its maxima and sums of the heads in storage of its own, from call to call.
#include <algorithm>
#include <cmath>
#include <vector>

static thread_local std::vector<float> most, sum;

extern "C" void edge_softmax(int M, int H, int nnz, const int* indptr, const float* e,
                             float* alpha) {
#pragma omp parallel for schedule(dynamic, 64)
    for (int i = 0; i < M; ++i) {
        most.assign(H, -INFINITY);
        sum.assign(H, 0.0f);
        for (long p = indptr[i]; p < indptr[i + 1]; ++p)
            for (int h = 0; h < H; ++h) most[h] = std::max(most[h], e[p * H + h]);
        for (long p = indptr[i]; p < indptr[i + 1]; ++p)
            for (int h = 0; h < H; ++h) {
                alpha[p * H + h] = std::exp(e[p * H + h] - most[h]);
                sum[h] += alpha[p * H + h];
            }
        for (long p = indptr[i]; p < indptr[i + 1]; ++p)
            for (int h = 0; h < H; ++h) alpha[p * H + h] /= sum[h];
    }
}
