// SPDX-License-Identifier: Apache-2.0
// CUDA's vector types, with the alignments that the programming guide's table gives them.
#pragma once

#define KW_VECTORS(T, NAME, ALIGN2, ALIGN4)                                          \
    struct NAME##1 { T x; };                                                         \
    struct __attribute__((aligned(ALIGN2))) NAME##2 { T x, y; };                     \
    struct NAME##3 { T x, y, z; };                                                   \
    struct __attribute__((aligned(ALIGN4))) NAME##4 { T x, y, z, w; };               \
    constexpr NAME##1 make_##NAME##1(T x) { return {x}; }                            \
    constexpr NAME##2 make_##NAME##2(T x, T y) { return {x, y}; }                    \
    constexpr NAME##3 make_##NAME##3(T x, T y, T z) { return {x, y, z}; }            \
    constexpr NAME##4 make_##NAME##4(T x, T y, T z, T w) { return {x, y, z, w}; }

KW_VECTORS(signed char, char, 2, 4)
KW_VECTORS(unsigned char, uchar, 2, 4)
KW_VECTORS(short, short, 4, 8)
KW_VECTORS(unsigned short, ushort, 4, 8)
KW_VECTORS(int, int, 8, 16)
KW_VECTORS(unsigned int, uint, 8, 16)
KW_VECTORS(long, long, 16, 16)
KW_VECTORS(unsigned long, ulong, 16, 16)
KW_VECTORS(long long, longlong, 16, 16)
KW_VECTORS(unsigned long long, ulonglong, 16, 16)
KW_VECTORS(float, float, 8, 16)
KW_VECTORS(double, double, 16, 16)
#undef KW_VECTORS

struct dim3 {
    unsigned int x, y, z;
    constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    constexpr operator uint3() const { return {x, y, z}; }
};
