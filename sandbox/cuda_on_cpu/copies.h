// SPDX-License-Identifier: Apache-2.0
// Asynchronous copies into shared memory (cp.async). Each thread holds its own: the data arrive only
// at the wait that covers them, and until then the place is filled with 0xFF, as memory that nobody
// wrote. A device may be earlier; a kernel that rests on that is wrong.
#pragma once

namespace kw {

struct Copy {
    void* to = nullptr;
    unsigned bytes = 0, group = 0;
    int line = 0;
    unsigned char data[16] = {};
};
void hold_copy(const Copy& copy);
void commit_copies();
// Until at most so many of the groups committed last are on their way.
void await_copies(std::size_t left);
void await_all_copies();

// Of `bytes` (4, 8 or 16) the first `taken` are copied, the others become zeros.
inline KW_UNSEEN void copy_async(void* to, const void* from, unsigned bytes, unsigned taken, int line) {
    taken = taken < bytes ? taken : bytes;
    require_aligned(to, bytes, line);
    Copy copy;
    copy.to = to, copy.bytes = bytes, copy.line = line;
    if (taken) {
        require_aligned(from, bytes, line);
        note_read(from, taken, line);
        std::memcpy(copy.data, from, taken);
    }
    note_copy(to, bytes, line);
    std::memset(to, 0xFF, bytes);
    hold_copy(copy);
}

}  // namespace kw

inline void __pipeline_memcpy_async(void* to, const void* from, std::size_t bytes,
                                    std::size_t zeros = 0, KW_LINE) {
    if (bytes != 4 && bytes != 8 && bytes != 16)
        kw::trap("__pipeline_memcpy_async takes 4, 8 or 16 bytes", line);
    kw::copy_async(to, from, unsigned(bytes), unsigned(bytes - (zeros < bytes ? zeros : bytes)), line);
}
inline void __pipeline_commit() { kw::commit_copies(); }
inline void __pipeline_wait_prior(std::size_t left) { kw::await_copies(left); }
