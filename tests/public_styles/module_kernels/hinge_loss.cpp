extern "C" void hinge_loss(
    int M, int N, const float* predictions, const float* targets, float* y1) {
    double sum = 0;
    for (long i = 0; i < M; ++i)
        for (long j = 0; j < N; ++j) {
            const double lacks = 1 - (double)predictions[i * N + j] * targets[i];
            sum += lacks > 0 ? lacks : 0;
        }
    *y1 = (float)(sum / ((double)M * N));
}
