// SPDX-License-Identifier: Apache-2.0
// Accesses that the access build is told of with a line: the compiler's instrumentation does not see
// them. In the other builds there is nothing to tell.
#pragma once

namespace kw {

#ifdef KW_ACCESS
#define KW_UNSEEN __attribute__((no_sanitize("thread"), noinline))
void note_atomic(const void* at, unsigned bytes, int line);
void note_read(const void* at, unsigned bytes, int line);
void note_write(const void* at, unsigned bytes, int line);
void note_volatile(const void* at, unsigned bytes, bool is_write, int line);
// An asynchronous copy begins, and has arrived.
void note_copy(const void* to, unsigned bytes, int line);
void note_arrival(const void* to, unsigned bytes, int line);
#else
#define KW_UNSEEN
inline void note_atomic(const void*, unsigned, int) {}
inline void note_read(const void*, unsigned, int) {}
inline void note_write(const void*, unsigned, int) {}
inline void note_volatile(const void*, unsigned, bool, int) {}
inline void note_copy(const void*, unsigned, int) {}
inline void note_arrival(const void*, unsigned, int) {}
#endif

}  // namespace kw
