// SPDX-License-Identifier: Apache-2.0
// CUDA C++ for an ordinary C++ compiler: what a device source may use, on top of our own runtime.
//
// Included by force ahead of every source, precompiled; the headers with CUDA's names are empty.
#pragma once

// From C++20 on <math.h> has std::lerp at global scope, where sources define one of their own.
#define lerp kw_std_lerp
#include <array>
#include <cassert>
#include <cfloat>
#include <cinttypes>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <initializer_list>
#include <limits>
#include <math.h>
#include <numbers>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <tuple>
#include <type_traits>
#include <utility>

// The rest of what CCCL has for NVRTC, for sources that name some of it: it makes builds slower.
#ifdef KW_ALL_OF_STD
#include <algorithm>
#include <bit>
#include <complex>
#include <concepts>
#include <functional>
#include <iterator>
#include <numeric>
#include <optional>
#include <ratio>
#include <span>
#include <variant>
#else
namespace std {
template <typename T> constexpr const T& clamp(const T& x, const T& low, const T& high) {
    return x < low ? low : high < x ? high : x;
}
}  // namespace std
#endif

#undef lerp

#include "vectors.h"
#include "block.h"
#include "shared.h"
#include "unseen.h"
#include "atomics.h"
#include "warp.h"
#include "spaces.h"
#include "copies.h"
#include "device_math.h"
#include "rare_math.h"
#include "packed.h"
#include "rounding.h"
#include "half_functions.h"
#include "half.h"
#include "half_pairs.h"
#include "half_conversions.h"
#include "fp8.h"
#include "fp8_conversions.h"
#include "memory.h"
#include "groups.h"
#include "dot.h"
#include "matrix.h"
#include "mma.h"
#include "matrix_moves.h"
#include "ptx.h"
#include "ptx_conversions.h"
#include "ptx_memory.h"
#include "launch.h"

namespace cuda { namespace std = ::std; }

// From here on the names are CUDA's; the standard library's headers have been read by now.
#define __CUDACC__ 1
#define __CUDACC_RTC__ 1
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define CUDART_VERSION 13000
#define CUDA_VERSION 13000

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __grid_constant__
// Sources write `inline` beside it, which g++ does not take twice.
#define __forceinline__
#define __noinline__ __attribute__((noinline))
#define __inline_hint__
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __builtin_assume(claim) ((void)0)
#define __assume(claim) ((void)0)

#define printf(...) (::kw::dropped(__VA_ARGS__))
#undef assert
#ifdef NDEBUG
#define assert(claim) ((void)0)
#else
#define assert(claim) ((claim) ? (void)0 : ::kw::trap("assert(" #claim ")", __LINE__))
#endif

#include "constants.h"

// Types that the signature of a host's function may name.
typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1 };
struct cudaDeviceProp;
