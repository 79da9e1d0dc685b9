"""Habits of CUDA sources that nvcc takes: rows of (declarations, statements of a kernel).

A kernel has `x`, `y`, `n` and its thread's number `i`. Rows of one group share its headers.
"""

from __future__ import annotations

from typing import NamedTuple


class Habit(NamedTuple):
    """One row: what stands before the kernel, and in it."""

    declarations: str
    statements: str


def uses(statements: str) -> Habit:
    return Habit("", statements)


BARE = {
    "infinity": uses("y[i] = fmaxf(-INFINITY, x[i]); if (x[i] == HUGE_VALF) y[i] = NAN;"),
    "limits in C": uses(
        "y[i] = x[i] < FLT_MAX ? FLT_EPSILON + FLT_MIN : float(DBL_MAX + INT_MAX);"
    ),
    "more limits": uses(
        "y[i] = UINT_MAX + LLONG_MAX + CHAR_BIT + INT32_MIN + SIZE_MAX + INT64_MAX;"
    ),
    "limits of std": uses(
        "y[i] = std::numeric_limits<float>::infinity() + std::numeric_limits<int>::max()"
        " + std::numeric_limits<float>::lowest() + std::numeric_limits<double>::epsilon()"
        " + std::numeric_limits<float>::quiet_NaN();"
    ),
    "constants of CUDA": uses("y[i] = -CUDART_INF_F + CUDART_NAN_F + CUDART_PI_F + CUDART_L2E_F;"),
    "pi": uses("y[i] = M_PI + M_SQRT2 + float(M_LN2) + M_2_SQRTPI;"),
    "short names": uses("uint a = i; ushort b = a; ulong c = b; y[i] = a + b + c;"),
    "wide integers": uses(
        "int8_t a = 1; int16_t b = 2; int32_t c = 3; int64_t d = 4; uint8_t e = 5; uint16_t f = 6;"
        " uint32_t g = 7; uint64_t h = 8; std::size_t j = 9; ptrdiff_t k = 1; uintptr_t l = 1;"
        " y[i] = a + b + c + d + e + f + g + h + j + k + l + std::uint32_t(1);"
    ),
    "mathematics of std": uses(
        "y[i] = std::exp(x[i]) + std::log(x[i]) + std::sqrt(x[i]) + std::abs(x[i])"
        " + std::fabs(x[i]) + std::pow(x[i], 2) + std::tanh(x[i]) + std::fma(x[i], x[i], x[i])"
        " + std::fmax(x[i], 0.0f) + std::floor(x[i]) + std::isnan(x[i]) + std::erf(x[i]);"
    ),
    "mathematics of integers": uses("y[i] = sqrt(n) + pow(n, 2) + pow(2.0f, n) + std::sqrt(i);"),
    "least and greatest": uses(
        "y[i] = std::max(x[i], 0.0f) + std::min(n, 3) + std::min<int64_t>(n, 5) + max(n, 1)"
        " + min(x[i], 1.0f) + std::clamp(x[i], 0.0f, 1.0f); float a = 1, b = 2; std::swap(a, b);"
    ),
    "traits": Habit(
        "template <typename T, typename = std::enable_if_t<std::is_floating_point<T>::value>>\n"
        "__device__ T twice(T v) { static_assert(std::is_same_v<T, float>); return v + v; }\n"
        "template <typename T> using Acc = std::conditional_t<std::is_integral_v<T>, int, T>;",
        "Acc<float> sum = twice(x[i]); y[i] = std::move(sum) + std::is_same<int, float>::value;",
    ),
    "a sequence": Habit(
        "template <size_t... I> __device__ float add(const float* v, std::index_sequence<I...>) {\n"
        "  return (v[I] + ...);\n}",
        "y[i] = add(x, std::make_index_sequence<4>{});",
    ),
    "a pair": uses("auto both = std::make_pair(x[i], n); y[i] = both.first + both.second;"),
    "printing": uses('if (n < 0) printf("%d %f\\n", n, x[i]);'),
    "assertions": uses("assert(n >= 0); static_assert(sizeof(float) == 4); y[i] = 0;"),
    "traps": uses("if (n < 0) __trap(); y[i] = 0;"),
    "clocks": uses("long long t = clock64(); clock_t u = clock(); y[i] = (t + u) * 0;"),
    "memory of C": uses("float v; memcpy(&v, &x[i], sizeof v); memset(&y[i], 0, 4); y[i] = v;"),
    "helpers without a mark": Habit(
        "constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }\n"
        "static inline int round_up(int a, int b) { return ceil_div(a, b) * b; }",
        "__shared__ float s[ceil_div(70, 32)]; s[i % 3] = x[i]; y[i] = ceil_div(n, 4);",
    ),
    "helpers of the host": Habit("__host__ int blocks(int n) { return n / 256; }", "y[i] = n;"),
    "a functor": Habit(
        "struct Plus {\n"
        "  __host__ __device__ float operator()(float a, float b) const { return a + b; }\n"
        "  static constexpr float zero = 0; };\n"
        "template <class Op> __forceinline__ __device__ float fold(Op op, float a) {\n"
        "  return op(a, Op::zero);\n}",
        "y[i] = fold(Plus{}, x[i]); auto f = [&](float v) { return v * n; }; y[i] += f(x[i]);",
    ),
    "a macro of checks": Habit(
        "#define CUDA_CHECK(call) do { cudaError_t err = (call); if (err != cudaSuccess) { \\\n"
        '  fprintf(stderr, "%s", cudaGetErrorString(err)); exit(1); } } while (0)\n'
        "#define DIVUP(a, b) (((a) + (b) - 1) / (b))\n"
        "#define FETCH(p) (reinterpret_cast<const float4*>(&(p))[0])",
        "y[i] = DIVUP(n, 4) + FETCH(x[0]).w;",
    ),
    "a host's signature": Habit("void launch(float* y, int n, cudaStream_t stream);", "y[i] = n;"),
    "own definitions": Habit(
        "#define INFINITY __int_as_float(0x7f800000)\n#define M_PI 3.14159265358979323846f\n"
        "#ifndef FLT_MAX\n#define FLT_MAX 3e38f\n#endif\n#undef INT_MAX\n"
        "#define INT_MAX 0x7fffffff\ntypedef unsigned int uint;\nusing uint32_t = unsigned int;",
        "uint a = INT_MAX; y[i] = a + INFINITY + M_PI;",
    ),
    "conditions": Habit(
        "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800\n#define AMPERE 1\n#endif\n"
        "#ifdef __CUDACC__\n#define HD __host__ __device__\n#endif\n#ifdef INFINITY\n"
        "#define INF 1\n#endif\nHD inline float inc(float v) { return v + AMPERE + INF; }",
        "y[i] = inc(x[i]);",
    ),
    "constant memory": Habit(
        "__constant__ float weights[4] = {1, 2, 3, 4};\n__device__ __constant__ int shift = 2;\n"
        "static __device__ int counter;\nconst float scale = 0.5f;\n"
        "static __constant__ float table[2] = {1.0f, 2.0f};",
        "y[i] = weights[i & 3] + shift + scale + table[1]; atomicAdd(&counter, 1);",
    ),
    "shared structures": Habit(
        "struct __align__(8) MD { float m, d; };\ntypedef struct { int row; float sum; } Carry;",
        "__shared__ MD s[32]; __shared__ Carry c[2][4]; s[i & 31] = {x[i], 1.0f};"
        " c[i & 1][i & 3].row = n; __syncthreads(); y[i] = s[0].m + c[0][0].row;",
    ),
    "cache hints": uses(
        "__stcs(y + i, __ldcs(x + i) + __ldg(x + i) + __ldcg(x + i) + __ldca(x + i));"
        " __stcg(y + i, 1.0f); __stwt(y + i, 2.0f);"
        " float4 v = __ldg(reinterpret_cast<const float4*>(x)); y[i] = v.x;"
    ),
    "reductions of a warp": uses(
        "unsigned m = __activemask(); y[i] = __reduce_add_sync(m, n) + __reduce_max_sync(m, i)"
        " + __match_any_sync(m, n) + __popc(__ballot_sync(m, x[i] > 0)) + __any_sync(m, n)"
        " + __all_sync(m, n) + __ffs(m) + __clz(n) + __brev(m);"
        " int p; y[i] += __match_all_sync(m, n, &p) + __shfl_down_sync(m, x[i], 1);"
    ),
    "atomics": Habit(
        "__device__ float atomicMaxFloat(float* at, float v) {\n"
        "  int* p = (int*)at; int old = *p, seen;\n"
        "  do { seen = old; old = atomicCAS(p, seen,\n"
        "       __float_as_int(fmaxf(v, __int_as_float(seen)))); } while (seen != old);\n"
        "  return __int_as_float(old);\n}",
        "atomicMaxFloat(y, x[i]); atomicAdd(y + i, x[i]); unsigned long long* w ="
        " (unsigned long long*)y; atomicAdd(w, 1ULL); atomicMax((int*)y, n); atomicExch(y, 1.0f);",
    ),
    "alignment": uses(
        "const float* p = (const float*)__builtin_assume_aligned(x, 16); __builtin_assume(n > 0);"
        " __align__(16) float v[4] = {p[0], p[1], p[2], p[3]}; y[i] = v[i & 3];"
        " alignas(16) float w[4]; *reinterpret_cast<float4*>(w) = make_float4(1, 2, 3, 4);"
        " if (__builtin_expect(n > 3, 1)) y[i] += w[1];"
    ),
    "hints for loops": uses(
        "float s = 0;\n#pragma unroll\nfor (int k = 0; k < 4; ++k) s += x[k];\n"
        "#pragma unroll 4\nfor (int k = 0; k < n; ++k) s += x[k];\n"
        "#pragma nounroll\nfor (int k = 0; k < n; ++k) s += x[k]; y[i] = s;"
    ),
    "fences": uses(
        "__threadfence(); __threadfence_block(); __syncwarp(); __nanosleep(0); y[i] = 0;"
    ),
    "fast intrinsics": uses(
        "float s, c; __sincosf(x[i], &s, &c); sincosf(x[i], &s, &c); y[i] = __expf(x[i]) + s + c"
        " + __logf(x[i]) + __fdividef(x[i], 2.0f) + __powf(x[i], 2.0f) + __frcp_rn(x[i])"
        " + rsqrtf(x[i]) + __fsqrt_rn(x[i]) + exp2f(x[i]) + exp10f(x[i]) + __saturatef(x[i])"
        " + __frsqrt_rn(x[i]) + normcdff(x[i]) + erfinvf(x[i]) + cbrtf(x[i]) + rcbrtf(x[i])"
        " + sinpif(x[i]) + fdimf(x[i], 1.0f) + ldexpf(x[i], 2) + __fmaf_rn(x[i], x[i], 1.0f)"
        " + erfcxf(x[i]) + normcdfinvf(x[i]) + log1pf(x[i]) + expm1f(x[i]) + hypotf(x[i], 1.0f);"
    ),
    "bits": uses(
        "unsigned u = __float_as_uint(x[i]); y[i] = __uint_as_float(__byte_perm(u, u, 0x0123))"
        " + __funnelshift_l(u, u, 3) + __mulhi(n, n) + __umulhi(u, u) + __mul24(n, n)"
        " + __popcll(u) + __float2int_rn(x[i]) + __int2float_rn(n) + __vadd2(u, u)"
        " + __dp4a(n, n, n) + __vmaxs4(u, u) + __vcmpgtu2(u, u);"
    ),
    "enumerations": Habit(
        "enum class Act : int { none, relu };\nenum Reduce { SUM, MAX };\n"
        "template <Act A> __device__ inline float act(float v) {\n"
        "  if constexpr (A == Act::relu) return v > 0 ? v : 0.f; else return v;\n}",
        "y[i] = act<Act::relu>(x[i]) + act<Act::none>(x[i]) + (n == MAX);",
    ),
    "launch bounds": Habit(
        "template <int B>\n__global__ void __launch_bounds__(B, 2) other(float* y) { *y = 1; }\n"
        "__global__ __launch_bounds__(128) void third(float* y) { *y = 3; }",
        "y[i] = 0;",
    ),
    "once": Habit("#pragma once\n#pragma diag_suppress 177", "y[i] = 0;"),
    "all of std": Habit(
        "namespace own { using namespace std;\n__device__ float f(float a, int n) {\n"
        "  return max(a, 1.0f) + exp(a) + min(n, 2) + abs(a) + isnan(a); } }",
        "y[i] = own::f(x[i], n);",
    ),
    "vectors": uses(
        "float4 v = make_float4(x[0], x[1], x[2], x[3]); float2 w = {v.x, v.y};"
        " uint3 t = threadIdx; dim3 d(1, 2, 3); uchar4 b = make_uchar4(1, 2, 3, 4);"
        " longlong2 l = make_longlong2(1, 2);"
        " y[i] = v.w + w.x + t.x + d.z + b.y + l.x;"
    ),
    "names of its own": Habit(
        "__device__ float lerp(float a, float b, float t) { return a + t * (b - a); }\n"
        "__device__ float clamp(float v, float a, float b) { return fminf(fmaxf(v, a), b); }\n"
        "__device__ float4 operator+(float4 a, float4 b) { a.x += b.x; return a; }",
        "float4 v = make_float4(1, 2, 3, 4); y[i] = lerp(x[i], 1, 2) + clamp(x[i], 0, 1);"
        " y[i] += (v + v).x;",
    ),
    "namespaces": Habit(
        "namespace a::b { static inline __device__ float one() { return 1; } }\n"
        "namespace { __device__ float two() { return 2; } }\nnamespace ab = a::b;",
        "y[i] = ab::one() + two();",
    ),
}

HEADERS = (
    "cuda.h",
    "cuda_runtime.h",
    "cuda_runtime_api.h",
    "device_launch_parameters.h",
    "device_functions.h",
    "math_constants.h",
    "math_functions.h",
    "vector_types.h",
    "cuComplex.h",
    "vector_functions.h",
    "cuda_fp16.h",
    "cuda_bf16.h",
    "cuda_fp8.h",
    "mma.h",
    "cuda_pipeline.h",
    "cuda_pipeline_primitives.h",
    "sm_60_atomic_functions.h",
    "library_types.h",
    "driver_types.h",
    "cuda_occupancy.h",
    "cuda_profiler_api.h",
    "channel_descriptor.h",
    "nvrtc.h",
    "cuda/std/cstdint",
    "cuda/std/type_traits",
    "cuda/std/limits",
    "torch/extension.h",
    "torch/all.h",
    "torch/torch.h",
    "ATen/ATen.h",
    "ATen/cuda/CUDAContext.h",
    "ATen/native/cuda/block_reduce.cuh",
    "c10/cuda/CUDAGuard.h",
    "c10/util/Half.h",
    "pybind11/pybind11.h",
    "Python.h",
    "cublas_v2.h",
    "cusparse.h",
    "cudnn.h",
    "curand.h",
    "helper_cuda.h",
    "nvtx3/nvToolsExt.h",
    "thrust/device_vector.h",
    "thrust/sort.h",
    "omp.h",
    "vector",
    "string",
    "iostream",
    "iomanip",
    "fstream",
    "sstream",
    "map",
    "unordered_map",
    "memory",
    "random",
    "chrono",
    "thread",
    "mutex",
    "atomic",
    "stdexcept",
    "cstdio",
    "cstdlib",
    "cstring",
    "cassert",
    "cmath",
    "cfloat",
    "climits",
    "cstdint",
    "cstddef",
    "limits",
    "algorithm",
    "utility",
    "type_traits",
    "functional",
    "numeric",
    "tuple",
    "array",
    "initializer_list",
    "stdio.h",
    "stdlib.h",
    "string.h",
    "math.h",
    "assert.h",
    "float.h",
    "limits.h",
    "stdint.h",
    "stdbool.h",
    "stddef.h",
    "inttypes.h",
    "time.h",
    "sys/time.h",
    "unistd.h",
    "memory.h",
)
"""Named out of habit: a kernel that needs none of them builds."""

OF_CUDA = {
    "half": uses(
        "__half h = __float2half(x[i]); half2 p = __floats2half2_rn(x[i], 1.0f);"
        " h = __hadd(h, h) * h; y[i] = __half2float(h) + __low2float(__hmul2(p, p));"
    ),
    "bfloat16": uses("__nv_bfloat16 b = __float2bfloat16(x[i]); y[i] = __bfloat162float(b);"),
    "groups": Habit(
        "namespace cg = cooperative_groups;",
        "cg::thread_block block = cg::this_thread_block();"
        " auto warp = cg::tiled_partition<32>(block);"
        " float s = cg::reduce(warp, x[i], cg::plus<float>{}); block.sync();"
        " auto tile = cg::tiled_partition<8>(warp); y[i] = s + tile.shfl_down(x[i], 1)"
        " + warp.meta_group_rank() + block.thread_rank() + tile.any(n);"
        " y[i] += cg::coalesced_threads().size() + cg::inclusive_scan(warp, n);",
    ),
    "groups of a kind that is known late": uses(
        "using namespace cooperative_groups; thread_group g = this_thread_block(); g.sync();"
        " thread_group t = tiled_partition(g, 16); t.sync(); y[i] = t.size() + t.thread_rank()"
        " + labeled_partition(tiled_partition<32>(this_thread_block()), n & 3).size();"
    ),
    "asynchronous copies": uses(
        "__shared__ __align__(16) float s[128]; __pipeline_memcpy_async(&s[4 * i], &x[4 * i], 16);"
        " __pipeline_commit(); __pipeline_wait_prior(0); __syncthreads(); y[i] = s[i];"
    ),
    "wmma": uses(
        "using namespace nvcuda; __shared__ half a[256]; wmma::fragment<wmma::matrix_a, 16, 16, 16,"
        " half, wmma::row_major> f; wmma::load_matrix_sync(f, a, 16); y[i] = f.num_elements;"
    ),
    "cuda::std": uses(
        "y[i] = cuda::std::numeric_limits<float>::max() + cuda::std::is_same_v<int, float>"
        " + cuda::std::uint32_t(1);"
    ),
    "constants": uses("y[i] = CUDART_INF_F + CUDART_PIO2_F + CUDART_SQRT_TWO_F + CUDART_LN2;"),
}
"""With the headers of CUDA."""

OF_STD = {
    "tuple": uses("auto [a, b] = std::make_tuple(x[i], n); y[i] = a + b;"),
    "array": uses("std::array<float, 4> v{}; v[i & 3] = x[i]; for (float e : v) y[i] += e;"),
    "functional": uses("std::plus<float> plus; y[i] = plus(x[i], 1) + std::greater<>{}(n, 1);"),
    "optional": uses("std::optional<float> v; if (n) v = x[i]; y[i] = v.value_or(2.0f);"),
    "numbers": uses("y[i] = std::numbers::pi_v<float>;"),
    "bit": uses("y[i] = std::bit_cast<float>(n) + std::popcount(unsigned(n));"),
    "algorithm": uses("y[i] = std::lower_bound(x, x + n, 1.0f) - x;"),
}
"""With the headers of std of the same names."""
