// CUDA C++ for an ordinary C++ compiler: what a device source may use, on top of our own runtime.
//
// Included by force ahead of every source, precompiled; the headers with CUDA's names are empty.
#pragma once

#include <array>
#include <cassert>
#include <cfloat>
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
#include <stdint.h>
#include <string.h>
#include <tuple>
#include <type_traits>
#include <utility>

#include "vectors.h"
#include "block.h"
#include "shared.h"
#include "atomics.h"
#include "warp.h"
#include "device_math.h"
#include "half.h"
#include "memory.h"
#include "groups.h"
#include "matrix.h"
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

#define CUDART_INF_F __builtin_inff()
#define CUDART_NAN_F __builtin_nanf("")
#define CUDART_INF __builtin_inf()
#define CUDART_NAN __builtin_nan("")
#define CUDART_MAX_NORMAL_F FLT_MAX
#define CUDART_PI_F 3.141592654f
#define CUDART_PI 3.1415926535897931e+0
#define CUDART_LOG2E_F 1.442695041f
#define CUDART_LN2_F 0.693147181f
