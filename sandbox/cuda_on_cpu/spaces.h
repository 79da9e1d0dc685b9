// SPDX-License-Identifier: Apache-2.0
// Addresses as numbers. One of shared memory has 32 bits: each variable has a window of its own, in
// which its bytes are numbered. Generic and global addresses are those of this process.
#pragma once

namespace kw {

std::uint32_t shared_address(const void* at, int line);
void* at_shared(std::uint32_t address);

inline void require_aligned(const void* at, unsigned bytes, int line) {
    if (reinterpret_cast<std::uintptr_t>(at) % bytes) trap("misaligned address", line);
}

}  // namespace kw

inline std::size_t __cvta_generic_to_shared(const void* at, KW_LINE) {
    return kw::shared_address(at, line);
}
inline void* __cvta_shared_to_generic(std::size_t address) {
    return kw::at_shared(std::uint32_t(address));
}
inline std::size_t __cvta_generic_to_global(const void* at) { return std::size_t(at); }
inline void* __cvta_global_to_generic(std::size_t address) {
    return reinterpret_cast<void*>(address);
}
inline unsigned __isShared(const void* at) { return kw::is_shared(at); }
inline unsigned __isGlobal(const void* at) { return !kw::is_shared(at); }
