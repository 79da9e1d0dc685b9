// SPDX-License-Identifier: Apache-2.0
// What nvcc has a source find without an #include, for NVRTC, which reads this ahead of each
// candidate: fixed-width integers, limits, constants, and the part of std that device code uses.
//
// A macro, a type or a function of std that stands here needs no header; shims.py leaves the headers
// of those names empty.
#pragma once

// long long and not long: CCCL's own <cuda/std/cstdint> says the same, and both may be included.
typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef int64_t intptr_t; typedef uint64_t uintptr_t;
typedef int64_t intmax_t; typedef uint64_t uintmax_t;
typedef int8_t int_fast8_t; typedef int16_t int_fast16_t; typedef int32_t int_fast32_t;
typedef int64_t int_fast64_t;
typedef uint8_t uint_fast8_t; typedef uint16_t uint_fast16_t; typedef uint32_t uint_fast32_t;
typedef uint64_t uint_fast64_t;
typedef int8_t int_least8_t; typedef int16_t int_least16_t; typedef int32_t int_least32_t;
typedef int64_t int_least64_t;
typedef uint8_t uint_least8_t; typedef uint16_t uint_least16_t; typedef uint32_t uint_least32_t;
typedef uint64_t uint_least64_t;
// Those of <sys/types.h>, which the C library's <stdlib.h> brings along.
typedef unsigned int uint; typedef unsigned short ushort; typedef unsigned long ulong;
typedef uint8_t u_int8_t; typedef uint16_t u_int16_t; typedef uint32_t u_int32_t;
typedef uint64_t u_int64_t; typedef long ssize_t;

#define INT8_MIN (-128)
#define INT8_MAX 127
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define INT64_MIN (-9223372036854775807LL - 1)
#define INT64_MAX 9223372036854775807LL
#define UINT8_MAX 255
#define UINT16_MAX 65535
#define UINT32_MAX 4294967295U
#define UINT64_MAX 18446744073709551615ULL
#define SIZE_MAX 18446744073709551615UL
#define INTPTR_MAX INT64_MAX
#define UINTPTR_MAX UINT64_MAX

#define CHAR_BIT 8
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define CHAR_MIN SCHAR_MIN
#define CHAR_MAX SCHAR_MAX
#define SHRT_MIN (-32768)
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MIN (-2147483647 - 1)
#define INT_MAX 2147483647
#define UINT_MAX 4294967295U
#define LONG_MIN (-9223372036854775807L - 1)
#define LONG_MAX 9223372036854775807L
#define ULONG_MAX 18446744073709551615UL
#define LLONG_MIN (-9223372036854775807LL - 1)
#define LLONG_MAX 9223372036854775807LL
#define ULLONG_MAX 18446744073709551615ULL

#define FLT_RADIX 2
#define FLT_MANT_DIG 24
#define FLT_DIG 6
#define FLT_DECIMAL_DIG 9
#define FLT_MIN_EXP (-125)
#define FLT_MAX_EXP 128
#define FLT_MIN_10_EXP (-37)
#define FLT_MAX_10_EXP 38
#define FLT_MAX 3.40282346638528859811704183484516925e+38F
#define FLT_MIN 1.17549435082228750796873653722224568e-38F
#define FLT_EPSILON 1.19209289550781250000000000000000000e-7F
#define FLT_TRUE_MIN 1.40129846432481707092372958328991613e-45F
#define DBL_MANT_DIG 53
#define DBL_DIG 15
#define DBL_DECIMAL_DIG 17
#define DBL_MIN_EXP (-1021)
#define DBL_MAX_EXP 1024
#define DBL_MIN_10_EXP (-307)
#define DBL_MAX_10_EXP 308
#define DBL_MAX 1.7976931348623157e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
#define DBL_TRUE_MIN 4.9406564584124654e-324

#define INFINITY (__builtin_bit_cast(float, 0x7f800000U))
#define NAN (__builtin_bit_cast(float, 0x7fc00000U))
#define HUGE_VALF INFINITY
#define HUGE_VAL (__builtin_bit_cast(double, 0x7ff0000000000000ULL))
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#ifndef NULL
#define NULL 0
#endif

// With the whole file read as device code, a host function is refused for what it does, not for
// having no __device__: `__host__` says no more than nothing.
#undef __host__
#define __host__

#include <math_constants.h>

namespace std {
template <typename T, T v> struct integral_constant {
  static constexpr T value = v;
  using value_type = T;
  using type = integral_constant;
  constexpr operator T() const noexcept { return v; }
  constexpr T operator()() const noexcept { return v; }
};
template <bool b> using bool_constant = integral_constant<bool, b>;
using true_type = bool_constant<true>;
using false_type = bool_constant<false>;
template <typename T> struct type_identity { using type = T; };
template <typename T> using type_identity_t = T;
template <typename...> using void_t = void;

template <bool, typename T = void> struct enable_if {};
template <typename T> struct enable_if<true, T> { using type = T; };
template <bool b, typename T = void> using enable_if_t = typename enable_if<b, T>::type;
template <bool, typename A, typename B> struct conditional { using type = A; };
template <typename A, typename B> struct conditional<false, A, B> { using type = B; };
template <bool b, typename A, typename B>
using conditional_t = typename conditional<b, A, B>::type;

template <typename T> struct remove_const { using type = T; };
template <typename T> struct remove_const<const T> { using type = T; };
template <typename T> struct remove_volatile { using type = T; };
template <typename T> struct remove_volatile<volatile T> { using type = T; };
template <typename T> struct remove_reference { using type = T; };
template <typename T> struct remove_reference<T&> { using type = T; };
template <typename T> struct remove_reference<T&&> { using type = T; };
template <typename T> struct remove_pointer { using type = T; };
template <typename T> struct remove_pointer<T*> { using type = T; };
template <typename T> struct remove_pointer<T* const> { using type = T; };
template <typename T> struct remove_extent { using type = T; };
template <typename T> struct remove_extent<T[]> { using type = T; };
template <typename T, decltype(sizeof(0)) n> struct remove_extent<T[n]> { using type = T; };
template <typename T> using remove_const_t = typename remove_const<T>::type;
template <typename T> using remove_volatile_t = typename remove_volatile<T>::type;
template <typename T> using remove_reference_t = typename remove_reference<T>::type;
template <typename T> using remove_pointer_t = typename remove_pointer<T>::type;
template <typename T> using remove_extent_t = typename remove_extent<T>::type;
template <typename T> struct remove_cv { using type = remove_const_t<remove_volatile_t<T>>; };
template <typename T> using remove_cv_t = typename remove_cv<T>::type;
template <typename T> struct remove_cvref { using type = remove_cv_t<remove_reference_t<T>>; };
template <typename T> using remove_cvref_t = typename remove_cvref<T>::type;
template <typename T> struct add_const { using type = const T; };
template <typename T> using add_const_t = const T;
template <typename T> struct add_pointer { using type = remove_reference_t<T>*; };
template <typename T> using add_pointer_t = typename add_pointer<T>::type;
template <typename T> T&& declval() noexcept;

template <typename A, typename B> inline constexpr bool is_same_v = false;
template <typename T> inline constexpr bool is_same_v<T, T> = true;
template <typename T, typename... Ts> inline constexpr bool kw_is_one_of = (is_same_v<T, Ts> || ...);
template <typename T> inline constexpr bool is_void_v = is_same_v<remove_cv_t<T>, void>;
template <typename T> inline constexpr bool is_floating_point_v =
    kw_is_one_of<remove_cv_t<T>, float, double, long double>;
template <typename T> inline constexpr bool is_integral_v =
    kw_is_one_of<remove_cv_t<T>, bool, char, signed char, unsigned char, wchar_t, char8_t, char16_t,
                 char32_t, short, unsigned short, int, unsigned, long, unsigned long, long long,
                 unsigned long long>;
template <typename T> inline constexpr bool is_arithmetic_v =
    is_integral_v<T> || is_floating_point_v<T>;
template <typename T, bool = is_arithmetic_v<T>> inline constexpr bool is_signed_v = false;
template <typename T> inline constexpr bool is_signed_v<T, true> =
    remove_cv_t<T>(-1) < remove_cv_t<T>(0);
template <typename T> inline constexpr bool is_unsigned_v = is_arithmetic_v<T> && !is_signed_v<T>;
template <typename T> inline constexpr bool is_pointer_v = false;
template <typename T> inline constexpr bool is_pointer_v<T*> = true;
template <typename T> inline constexpr bool is_pointer_v<T* const> = true;
template <typename T> inline constexpr bool is_const_v = false;
template <typename T> inline constexpr bool is_const_v<const T> = true;
template <typename T> inline constexpr bool is_reference_v = false;
template <typename T> inline constexpr bool is_reference_v<T&> = true;
template <typename T> inline constexpr bool is_reference_v<T&&> = true;
template <typename T> inline constexpr bool is_array_v = false;
template <typename T> inline constexpr bool is_array_v<T[]> = true;
template <typename T, decltype(sizeof(0)) n> inline constexpr bool is_array_v<T[n]> = true;
template <typename T> inline constexpr bool is_enum_v = __is_enum(T);
template <typename T> inline constexpr bool is_class_v = __is_class(T);
template <typename T> inline constexpr bool is_empty_v = __is_empty(T);
template <typename T> inline constexpr bool is_trivially_copyable_v = __is_trivially_copyable(T);
template <typename A, typename B> inline constexpr bool is_base_of_v = __is_base_of(A, B);
template <typename A, typename B> inline constexpr bool is_convertible_v =
    __is_convertible_to(A, B);
#define KW_TRAIT(NAME) \
  template <typename T> struct NAME : bool_constant<NAME##_v<T>> {};
#define KW_TRAIT_OF_TWO(NAME) \
  template <typename A, typename B> struct NAME : bool_constant<NAME##_v<A, B>> {};
KW_TRAIT(is_void) KW_TRAIT(is_floating_point) KW_TRAIT(is_integral) KW_TRAIT(is_arithmetic)
KW_TRAIT(is_signed) KW_TRAIT(is_unsigned) KW_TRAIT(is_pointer) KW_TRAIT(is_const)
KW_TRAIT(is_reference) KW_TRAIT(is_array) KW_TRAIT(is_enum) KW_TRAIT(is_class) KW_TRAIT(is_empty)
KW_TRAIT(is_trivially_copyable)
KW_TRAIT_OF_TWO(is_same) KW_TRAIT_OF_TWO(is_base_of) KW_TRAIT_OF_TWO(is_convertible)
#undef KW_TRAIT
#undef KW_TRAIT_OF_TWO
template <typename T> using underlying_type_t = __underlying_type(T);
template <typename T> struct underlying_type { using type = __underlying_type(T); };
template <typename T> struct decay {
  using U = remove_reference_t<T>;
  using type = conditional_t<is_array_v<U>, remove_extent_t<U>*, remove_cv_t<U>>;
};
template <typename T> using decay_t = typename decay<T>::type;
template <typename T> struct make_unsigned;
template <typename T> struct make_signed;
#define KW_SIGNS(T, S, U)                                      \
  template <> struct make_unsigned<T> { using type = U; };     \
  template <> struct make_signed<T> { using type = S; };
KW_SIGNS(char, signed char, unsigned char) KW_SIGNS(signed char, signed char, unsigned char)
KW_SIGNS(unsigned char, signed char, unsigned char) KW_SIGNS(short, short, unsigned short)
KW_SIGNS(unsigned short, short, unsigned short) KW_SIGNS(int, int, unsigned)
KW_SIGNS(unsigned, int, unsigned) KW_SIGNS(long, long, unsigned long)
KW_SIGNS(unsigned long, long, unsigned long) KW_SIGNS(long long, long long, unsigned long long)
KW_SIGNS(unsigned long long, long long, unsigned long long)
#undef KW_SIGNS
template <typename T> using make_unsigned_t = typename make_unsigned<T>::type;
template <typename T> using make_signed_t = typename make_signed<T>::type;
template <typename... Ts> struct common_type;
template <typename T> struct common_type<T> { using type = decay_t<T>; };
template <typename A, typename B> struct common_type<A, B> {
  using type = decay_t<decltype(false ? declval<A>() : declval<B>())>;
};
template <typename A, typename B, typename C, typename... Ts> struct common_type<A, B, C, Ts...>
    : common_type<typename common_type<A, B>::type, C, Ts...> {};
template <typename... Ts> using common_type_t = typename common_type<Ts...>::type;

using ::size_t; using ::ptrdiff_t;
using nullptr_t = decltype(nullptr);
using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t;
using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t;
using ::intptr_t; using ::uintptr_t; using ::intmax_t; using ::uintmax_t;
using ::printf; using ::memcpy; using ::memset;

using ::abs; using ::fabs; using ::sqrt; using ::cbrt; using ::exp; using ::exp2; using ::expm1;
using ::log; using ::log2; using ::log10; using ::log1p; using ::sin; using ::cos; using ::tan;
using ::asin; using ::acos; using ::atan; using ::sinh; using ::cosh; using ::tanh; using ::asinh;
using ::acosh; using ::atanh; using ::erf; using ::erfc; using ::tgamma; using ::lgamma;
using ::ceil; using ::floor; using ::trunc; using ::round; using ::rint; using ::nearbyint;
using ::pow; using ::fmod; using ::fmin; using ::fmax; using ::atan2; using ::hypot;
using ::copysign; using ::fdim; using ::remainder; using ::nextafter; using ::fma; using ::ldexp;
using ::frexp; using ::modf; using ::scalbn; using ::logb; using ::ilogb; using ::lround;
using ::lrint; using ::llround; using ::llrint; using ::isnan; using ::isinf; using ::isfinite;
using ::signbit; using ::labs; using ::llabs;

template <typename T> struct numeric_limits {
  static constexpr bool is_specialized = false;
};
#define KW_INTEGER(T, LOWEST, GREATEST)                                                       \
  template <> struct numeric_limits<T> {                                                      \
    static constexpr bool is_specialized = true, is_integer = true, is_exact = true;          \
    static constexpr bool is_signed = is_signed_v<T>, is_modulo = !is_signed_v<T>;            \
    static constexpr bool has_infinity = false, has_quiet_NaN = false, is_bounded = true;     \
    static constexpr bool has_signaling_NaN = false, is_iec559 = false;                       \
    static constexpr int radix = 2;                                                           \
    static constexpr int digits = is_same_v<T, bool> ? 1 : int(sizeof(T)) * 8 - is_signed_v<T>; \
    static constexpr int digits10 = digits * 30103 / 100000, max_digits10 = 0;                \
    static constexpr T min() noexcept { return LOWEST; }                                      \
    static constexpr T lowest() noexcept { return LOWEST; }                                   \
    static constexpr T max() noexcept { return GREATEST; }                                    \
    static constexpr T epsilon() noexcept { return 0; }                                       \
    static constexpr T infinity() noexcept { return 0; }                                      \
    static constexpr T quiet_NaN() noexcept { return 0; }                                     \
  };
KW_INTEGER(bool, false, true) KW_INTEGER(char, SCHAR_MIN, SCHAR_MAX)
KW_INTEGER(signed char, SCHAR_MIN, SCHAR_MAX) KW_INTEGER(unsigned char, 0, UCHAR_MAX)
KW_INTEGER(short, SHRT_MIN, SHRT_MAX) KW_INTEGER(unsigned short, 0, USHRT_MAX)
KW_INTEGER(int, INT_MIN, INT_MAX) KW_INTEGER(unsigned int, 0, UINT_MAX)
KW_INTEGER(long, LONG_MIN, LONG_MAX) KW_INTEGER(unsigned long, 0, ULONG_MAX)
KW_INTEGER(long long, LLONG_MIN, LLONG_MAX) KW_INTEGER(unsigned long long, 0, ULLONG_MAX)
#undef KW_INTEGER
#define KW_FLOATING(T, P, BITS, INF, QNAN, SNAN)                                              \
  template <> struct numeric_limits<T> {                                                      \
    static constexpr bool is_specialized = true, is_integer = false, is_exact = false;        \
    static constexpr bool is_signed = true, is_modulo = false, is_bounded = true;             \
    static constexpr bool has_infinity = true, has_quiet_NaN = true;                          \
    static constexpr bool has_signaling_NaN = true, is_iec559 = true;                         \
    static constexpr int radix = 2, digits = P##_MANT_DIG, digits10 = P##_DIG;                \
    static constexpr int max_digits10 = P##_DECIMAL_DIG;                                      \
    static constexpr int min_exponent = P##_MIN_EXP, max_exponent = P##_MAX_EXP;              \
    static constexpr int min_exponent10 = P##_MIN_10_EXP, max_exponent10 = P##_MAX_10_EXP;    \
    static constexpr T min() noexcept { return P##_MIN; }                                     \
    static constexpr T lowest() noexcept { return -P##_MAX; }                                 \
    static constexpr T max() noexcept { return P##_MAX; }                                     \
    static constexpr T epsilon() noexcept { return P##_EPSILON; }                             \
    static constexpr T round_error() noexcept { return T(0.5); }                              \
    static constexpr T denorm_min() noexcept { return P##_TRUE_MIN; }                         \
    static constexpr T infinity() noexcept { return __builtin_bit_cast(T, BITS(INF)); }       \
    static constexpr T quiet_NaN() noexcept { return __builtin_bit_cast(T, BITS(QNAN)); }     \
    static constexpr T signaling_NaN() noexcept { return __builtin_bit_cast(T, BITS(SNAN)); } \
  };
KW_FLOATING(float, FLT, uint32_t, 0x7f800000U, 0x7fc00000U, 0x7fa00000U)
KW_FLOATING(double, DBL, uint64_t, 0x7ff0000000000000U, 0x7ff8000000000000U, 0x7ff4000000000000U)
#undef KW_FLOATING
template <typename T> struct numeric_limits<const T> : numeric_limits<T> {};

template <typename T> constexpr const T& min(const T& a, const T& b) { return b < a ? b : a; }
template <typename T> constexpr const T& max(const T& a, const T& b) { return a < b ? b : a; }
template <typename T, typename F> constexpr const T& min(const T& a, const T& b, F is_less) {
  return is_less(b, a) ? b : a;
}
template <typename T, typename F> constexpr const T& max(const T& a, const T& b, F is_less) {
  return is_less(a, b) ? b : a;
}
template <typename T> constexpr const T& clamp(const T& x, const T& low, const T& high) {
  return x < low ? low : high < x ? high : x;
}
template <typename T> constexpr void swap(T& a, T& b) {
  T kept = static_cast<T&&>(a);
  a = static_cast<T&&>(b);
  b = static_cast<T&&>(kept);
}
template <typename T, typename U = T> constexpr T exchange(T& at, U&& next) {
  T old = static_cast<T&&>(at);
  at = static_cast<U&&>(next);
  return old;
}
template <typename A, typename B> struct pair {
  using first_type = A;
  using second_type = B;
  A first;
  B second;
  constexpr pair() : first(), second() {}
  constexpr pair(const A& a, const B& b) : first(a), second(b) {}
};
template <typename A, typename B> pair(A, B) -> pair<A, B>;
template <typename A, typename B> constexpr pair<decay_t<A>, decay_t<B>> make_pair(A&& a, B&& b) {
  return {a, b};
}
template <typename A, typename B>
constexpr bool operator==(const pair<A, B>& one, const pair<A, B>& other) {
  return one.first == other.first && one.second == other.second;
}
template <typename A, typename B>
constexpr bool operator<(const pair<A, B>& one, const pair<A, B>& other) {
  return one.first < other.first || (!(other.first < one.first) && one.second < other.second);
}
template <typename T, T... Is> struct integer_sequence {
  using value_type = T;
  static constexpr decltype(sizeof(0)) size() noexcept { return sizeof...(Is); }
};
template <decltype(sizeof(0))... Is> using index_sequence =
    integer_sequence<decltype(sizeof(0)), Is...>;
// By halves: the compiler's own `__make_integer_seq` came with a later NVRTC than 13.0.
template <typename Low, typename High> struct kw_joined;
template <typename T, T... Is, T... Js>
struct kw_joined<integer_sequence<T, Is...>, integer_sequence<T, Js...>> {
  using type = integer_sequence<T, Is..., static_cast<T>(sizeof...(Is) + Js)...>;
};
template <typename T, decltype(sizeof(0)) n> struct kw_counted {
  using type = typename kw_joined<typename kw_counted<T, n / 2>::type,
                                  typename kw_counted<T, n - n / 2>::type>::type;
};
template <typename T> struct kw_counted<T, 0> { using type = integer_sequence<T>; };
template <typename T> struct kw_counted<T, 1> { using type = integer_sequence<T, T(0)>; };
template <typename T, T n> using make_integer_sequence = typename kw_counted<T, n>::type;
template <decltype(sizeof(0)) n> using make_index_sequence =
    make_integer_sequence<decltype(sizeof(0)), n>;
}  // namespace std

// What C++ makes of an integer argument: the function of double.
#define KW_OF_INTEGER(NAME)                                                   \
  template <typename T> constexpr ::std::enable_if_t<::std::is_integral_v<T>, double> NAME(T x) { \
    return NAME(double(x));                                                   \
  }
KW_OF_INTEGER(sqrt) KW_OF_INTEGER(cbrt) KW_OF_INTEGER(exp) KW_OF_INTEGER(exp2) KW_OF_INTEGER(log)
KW_OF_INTEGER(log2) KW_OF_INTEGER(log10) KW_OF_INTEGER(sin) KW_OF_INTEGER(cos)
KW_OF_INTEGER(tan) KW_OF_INTEGER(tanh) KW_OF_INTEGER(ceil) KW_OF_INTEGER(floor)
KW_OF_INTEGER(round) KW_OF_INTEGER(trunc) KW_OF_INTEGER(fabs)
#undef KW_OF_INTEGER
template <typename A, typename B>
constexpr ::std::enable_if_t<::std::is_integral_v<A> && ::std::is_arithmetic_v<B>, double> pow(
    A a, B b) {
  return pow(double(a), double(b));
}
namespace std {
using ::sqrt; using ::cbrt; using ::exp; using ::exp2; using ::log; using ::log2; using ::log10;
using ::sin; using ::cos; using ::tan; using ::tanh; using ::ceil; using ::floor; using ::round;
using ::trunc; using ::fabs; using ::pow;
}
