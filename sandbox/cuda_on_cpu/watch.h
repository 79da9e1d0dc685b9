// What the access build is told while threads run; in the other builds there is nothing to tell.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kw::watch {

#ifdef KW_ACCESS
// `report` holds its capacity in bytes, the number of buffers and the size of each; the buffers
// stand in `tensors` and `scratch`.
void call_begins(std::int64_t* report, void** tensors, unsigned count, void** scratch);
void call_ends();
void block_begins(unsigned threads);
void block_ends();
void shared_begins(const void* at, std::size_t bytes);
void barrier_opens();
// Lanes of a warp have met: all that live, or some; some operations order memory.
void lanes_met(unsigned warp, unsigned lanes, bool is_whole, bool is_ordering);
#else
inline void call_begins(std::int64_t*, void**, unsigned, void**) {}
inline void call_ends() {}
inline void block_begins(unsigned) {}
inline void block_ends() {}
inline void shared_begins(const void*, std::size_t) {}
inline void barrier_opens() {}
inline void lanes_met(unsigned, unsigned, bool, bool) {}
#endif

#ifdef KW_ACCESS
constexpr unsigned REPORTS = 1;  // arguments that this build has more than the others
#else
constexpr unsigned REPORTS = 0;
#endif

}  // namespace kw::watch
