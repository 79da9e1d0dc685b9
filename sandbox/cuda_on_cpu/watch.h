// SPDX-License-Identifier: Apache-2.0
// What the access build is told while threads run; in the other builds there is nothing to tell.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kw::watch {

#ifdef KW_ACCESS
// `report` holds its capacity in bytes, the number of buffers, the size of each, how many accesses of
// threads to watch in each launch, 0 for all of them, whether blocks that are not watched run where
// there is a later launch, how many of the tensors are inputs, and how far behind the report's start
// its table of writers begins, 0 for none; the buffers stand in `tensors` and `scratch`. Where not
// all accesses are watched, nothing is looked through for races.
void call_begins(std::int64_t* report, void** tensors, unsigned count, void** scratch);
void call_ends();
// Whether all accesses are watched, which is done with one block at a time.
bool is_thorough();
// Whether only some blocks of the launches are watched, and shall be spread over the grid.
bool is_sampling();
void launch_begins(std::int64_t kernel, std::uint64_t blocks);
// How many of the blocks that are left to run next.
std::uint64_t next_blocks(std::uint64_t left, bool is_last);
void block_begins(unsigned threads);
void block_ends();
void shared_begins(const void* at, std::size_t bytes);
void barrier_opens();
// Lanes of a warp have met: all that live, or some; some operations order memory.
void lanes_met(unsigned warp, unsigned lanes, bool is_whole, bool is_ordering);
// A lane takes what another one gives that is not there.
void lane_missing(unsigned rank, unsigned other, int line);
#else
inline void call_begins(std::int64_t*, void**, unsigned, void**) {}
inline void call_ends() {}
inline bool is_thorough() { return false; }
inline bool is_sampling() { return false; }
inline void launch_begins(std::int64_t, std::uint64_t) {}
inline std::uint64_t next_blocks(std::uint64_t left, bool) { return left; }
inline void block_begins(unsigned) {}
inline void block_ends() {}
inline void shared_begins(const void*, std::size_t) {}
inline void barrier_opens() {}
inline void lanes_met(unsigned, unsigned, bool, bool) {}
inline void lane_missing(unsigned, unsigned, int) {}
#endif

#ifdef KW_ACCESS
constexpr unsigned REPORTS = 1;  // arguments that this build has more than the others
#else
constexpr unsigned REPORTS = 0;
#endif

}  // namespace kw::watch
