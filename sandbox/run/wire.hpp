// SPDX-License-Identifier: Apache-2.0
// What a runner shares with the referee: frames, the call table, shared memory, the filter.
//
// Knows no kernel and no device. sandbox/frames.py, run/call_table.py and run/arena.py hold the same numbers.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

// A candidate that is loaded into the runner does not find these by name.
namespace [[gnu::visibility("hidden")]] wire {

enum Kind : uint32_t {
    READY = 1, CALL = 2, DONE = 3, PING = 4, PONG = 5, REFUSED = 6, LOAD = 7,
    UPLOAD = 8, FETCH = 9, REPLAY = 10, PREPARE = 11,
    TOGETHER = 12,
};
enum Role : uint64_t { INTEGER = 0, INPUT = 1, OUTPUT = 2, SCRATCH = 3, ROLES = 3, FENCED = 4 };
constexpr uint64_t MAX_ARGUMENTS = 176;  // half of them are sizes
constexpr uint64_t MAX_SLOTS = 64;
constexpr uint64_t GUARD_BYTES = 4096;  // before and after every tensor
constexpr uint64_t SUMMED_WORDS = 256;

enum Exit : int { BROKEN = 95, USAGE = 96, START_FAILED = 97, GONE = 98 };

struct Frame { uint32_t kind, nonce; uint64_t first, second; };
static_assert(sizeof(Frame) == 24);

// Behind the first `count` arguments stand their sizes in bytes, in the same order, as values.
struct Entry {
    uint64_t count;
    struct { uint64_t flags, value; } arguments[MAX_ARGUMENTS];

    uint64_t role(uint64_t i) const { return arguments[i].flags & ROLES; }
    bool is_fenced(uint64_t i) const { return arguments[i].flags & FENCED; }
    uint64_t value(uint64_t i) const { return arguments[i].value; }
    uint64_t bytes(uint64_t i) const { return arguments[count + i].value; }
};

[[noreturn]] inline void give_up(const char* what) {
    std::fprintf(stderr, "runner: %s: %s\n", what, std::strerror(errno));
    _exit(START_FAILED);
}

inline bool read_frame(int fd, Frame& frame) {
    auto* at = reinterpret_cast<char*>(&frame);
    for (size_t held = 0; held < sizeof frame;) {
        const ssize_t got = read(fd, at + held, sizeof frame - held);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        held += size_t(got);
    }
    return true;
}

inline void write_frame(int fd, const Frame& frame) {
    if (write(fd, &frame, sizeof frame) != ssize_t(sizeof frame)) _exit(GONE);
}

inline char* map(int fd, size_t bytes, int protection) {
    void* at = mmap(nullptr, bytes, protection, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (at == MAP_FAILED) give_up("cannot map the data");
    close(fd);
    return static_cast<char*>(at);
}

// On all threads: a library that was loaded before may have started some.
inline void install_filter(int fd) {
    static unsigned char bytes[32768];
    size_t held = 0;
    for (ssize_t got; (got = read(fd, bytes + held, sizeof bytes - held)) > 0;) held += size_t(got);
    close(fd);
    if (held == 0) give_up("no filter");
    sock_fprog program{static_cast<unsigned short>(held / sizeof(sock_filter)),
                       reinterpret_cast<sock_filter*>(bytes)};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) give_up("no_new_privs");
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
        give_up("seccomp");
}

// Of every n-th word of a tensor, from one that `choice` names.
inline uint64_t sum(const char* at, uint64_t bytes, uint64_t choice) {
    uint64_t total = 0;
    const uint64_t words = bytes / 4, step = words / SUMMED_WORDS + 1;
    for (uint64_t word = choice % step; word < words; word += step) {
        uint32_t held;
        std::memcpy(&held, at + 4 * word, 4);
        total += held;
    }
    return total;
}

inline uint64_t now_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}

}  // namespace wire
