extern "C" void hinge_loss(
    int M, int N, const float* __restrict predictions, const float* __restrict targets, float* y1) {
    double sum = 0;
#pragma omp parallel for reduction(+ : sum) if ((long)M * N > 50000)
    for (long i = 0; i < M; ++i) {
        const double target = targets[i];
        double row = 0;
#pragma omp simd reduction(+ : row)
        for (long j = 0; j < N; ++j) {
            const double lacks = 1 - predictions[i * N + j] * target;
            row += lacks > 0 ? lacks : 0;
        }
        sum += row;
    }
    *y1 = (float)(sum / ((double)M * N));
}
