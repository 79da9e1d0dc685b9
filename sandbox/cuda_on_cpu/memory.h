// SPDX-License-Identifier: Apache-2.0
// Loads and stores with a cache hint, clocks.
#pragma once

#define KW_LOAD(NAME) template <typename T> inline T NAME(const T* at) { return *at; }
#define KW_STORE(NAME) \
    template <typename T> inline void NAME(T* at, kw::Same<T> value) { *at = value; }
KW_LOAD(__ldg) KW_LOAD(__ldca) KW_LOAD(__ldcg) KW_LOAD(__ldcs) KW_LOAD(__ldlu) KW_LOAD(__ldcv)
KW_STORE(__stwb) KW_STORE(__stcg) KW_STORE(__stcs) KW_STORE(__stwt)
#undef KW_LOAD
#undef KW_STORE

inline long long clock64() { return std::clock(); }
