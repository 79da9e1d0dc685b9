// Remembers a plan for each shape it has seen: how large its blocks are and in which order they
// are taken. Nothing in a plan depends on the contents of A or B.
#include <algorithm>
#include <array>
#include <map>

namespace {

struct Plan {
    int rows, depth;
};

const Plan& plan_for(int M, int N, int K) {
    static std::map<std::array<int, 3>, Plan> known;
    const auto [found, is_new] = known.try_emplace({M, N, K});
    if (is_new) {
        const int fitting = (256 << 10) / int(sizeof(float)) / std::max(N, 1);
        found->second = {std::clamp(M / 4, 1, 64), std::clamp(fitting, 8, K < 8 ? 8 : K)};
    }
    return found->second;
}

}  // namespace

extern "C" void gemm(int M, int N, int K, const float* A, const float* B, float* C) {
    const Plan& plan = plan_for(M, N, K);
    std::fill(C, C + (long)M * N, 0.0f);
    for (int k0 = 0; k0 < K; k0 += plan.depth)
        for (int i0 = 0; i0 < M; i0 += plan.rows)
            for (int i = i0; i < std::min(M, i0 + plan.rows); ++i)
                for (int k = k0; k < std::min(K, k0 + plan.depth); ++k) {
                    const float a = A[(long)i * K + k];
                    for (int n = 0; n < N; ++n) C[(long)i * N + n] += a * B[(long)k * N + n];
                }
}
