// SPDX-License-Identifier: Apache-2.0
// Loads and stores with a cache hint, asynchronous copies, clocks.
#pragma once

#define KW_LOAD(NAME) template <typename T> inline T NAME(const T* at) { return *at; }
#define KW_STORE(NAME) \
    template <typename T> inline void NAME(T* at, kw::Same<T> value) { *at = value; }
KW_LOAD(__ldg) KW_LOAD(__ldca) KW_LOAD(__ldcg) KW_LOAD(__ldcs) KW_LOAD(__ldlu) KW_LOAD(__ldcv)
KW_STORE(__stwb) KW_STORE(__stcg) KW_STORE(__stcs) KW_STORE(__stwt)
#undef KW_LOAD
#undef KW_STORE

// Copies at once: what an asynchronous copy may do at the latest when it is waited for.
inline void __pipeline_memcpy_async(void* to, const void* from, std::size_t bytes,
                                    std::size_t zeros = 0) {
    const std::size_t taken = bytes - zeros;
    if (zeros == 0 && bytes == 16) *static_cast<uint4*>(to) = *static_cast<const uint4*>(from);
    else if (zeros == 0 && bytes == 8) *static_cast<uint2*>(to) = *static_cast<const uint2*>(from);
    else if (zeros == 0 && bytes == 4)
        *static_cast<unsigned*>(to) = *static_cast<const unsigned*>(from);
    else {
        for (std::size_t i = 0; i < taken; ++i)
            static_cast<char*>(to)[i] = static_cast<const char*>(from)[i];
        for (std::size_t i = taken; i < bytes; ++i) static_cast<char*>(to)[i] = 0;
    }
}
inline void __pipeline_commit() {}
inline void __pipeline_wait_prior(std::size_t) {}

inline long long clock64() { return std::clock(); }
