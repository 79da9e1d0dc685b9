// SPDX-License-Identifier: Apache-2.0
// The runner: a fresh process that loads one built candidate and calls it when the referee says so.
//
//   runner CONTROL_FD INPUT_FD INPUT_BYTES OUTPUT_FD OUTPUT_BYTES FILTER_FD GATE_FD LOOKS_FD ARTEFACT
//
// Inputs are mapped read-only, outputs writable; the call table stands at the start of the inputs.
// It knows no expected value and its word is only a claim. FILTER_FD gives a seccomp program
// that is installed before any of the candidate's code, constructors included, can run.
// The first READY comes before that, so that what fails until then is not the candidate's fault.
//
// A call begins where the referee opens the gate, a word in memory that is watched without sleep,
// and ends with the kernel's stamp on DONE: neither clock is this process's, and no time of waking
// up lies between them: the process is stopped from its answer until the inputs of the next call are
// written, and the gate opens once its looks at the gate are seen to go on. DONE carries a sum over words of the outputs that are chosen as the gate
// opens, so that it cannot well precede them.
//
// A plan of a pattern is made by the same exchange: PREPARE in place of CALL, of another function of
// the candidate's, for which the plan is what outputs are for a call.
//
// TOGETHER is a CALL of several slots at a time, each by a thread of its own (crew.hpp).
//
// Built with the address sanitizer it copies each tensor into a block of its own for the call, so
// that an access before or after one is seen, reads included. The plain build can make the
// pages before and after a tensor inaccessible for the call; the call table says for which.
#include <deque>
#include <dlfcn.h>
#include <initializer_list>
#include <malloc.h>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <thread>
#include <vector>

#include "crew.hpp"
#include "refused_call.hpp"
#include "wire.hpp"
#ifdef __SANITIZE_ADDRESS__
#include "sanitized_blocks.hpp"
#endif

namespace {

using wire::Entry;
constexpr size_t GATE_BYTES = 4096;
struct Gate { uint32_t nonce, choice; };
using Function = void (*)(void**);

void fence(const char* tensor, uint64_t bytes, int protection) {
    const auto page = uint64_t(sysconf(_SC_PAGESIZE)), at = reinterpret_cast<uint64_t>(tensor);
    for (const uint64_t beside : {at / page * page - page, (at + bytes + page - 1) / page * page})
        if (mprotect(reinterpret_cast<void*>(beside), page, protection) != 0)
            wire::give_up("mprotect");
}

// All of a call's fences, with an access for the pages of inputs and one for those of outputs.
[[maybe_unused]] void fences(const Entry& called, void** arguments, int of_inputs,
                             int of_outputs) {
    for (uint64_t i = 0; i < called.count; ++i)
        if (called.is_fenced(i))
            fence(static_cast<char*>(arguments[i]), called.bytes(i),
                  called.role(i) == wire::INPUT ? of_inputs : of_outputs);
}

// Without sleep, so that no time of waking up is measured. The gate opens within microseconds; who
// yields sooner waits for its next turn on a busy machine, who never does keeps a single CPU.
void await(const Gate* gate, uint32_t* looks, uint32_t nonce) {
    for (unsigned turn = 1; __atomic_load_n(&gate->nonce, __ATOMIC_ACQUIRE) != nonce; ++turn) {
        __atomic_store_n(looks, turn, __ATOMIC_RELAXED);
        if (turn % 65536 == 0) sched_yield();
    }
}

class Call {
public:
    Call(const Entry& entry, const char* inputs, char* outputs, wire::Role made)
        : entry(entry), count(entry.count), outputs(outputs), made(made) {
        if (count > wire::MAX_ARGUMENTS / 2) _exit(wire::BROKEN);
        for (uint64_t i = 0; i < count; ++i) {
            integers[i] = int(entry.value(i));
            arguments[i] = is(i, wire::INTEGER) ? static_cast<void*>(&integers[i])
                         : is(i, wire::INPUT)   ? const_cast<char*>(inputs) + entry.value(i)
                                                : outputs + entry.value(i);
        }
    }

#ifdef __SANITIZE_ADDRESS__
    // Copies are made here: before the gate there are no inputs.
    void run(Function kernel) {
        for (uint64_t i = 0; i < count; ++i)
            if (!is(i, wire::INTEGER))
                arguments[i] = sanitized::place(i, static_cast<char*>(arguments[i]), entry.bytes(i));
        if (kernel) kernel(arguments);
        for (uint64_t i = 0; i < count; ++i) {
            if (is(i, wire::INTEGER)) continue;
            if (is(i, made))
                std::memcpy(outputs + entry.value(i), sanitized::placed[i].tensor, entry.bytes(i));
            sanitized::withdraw(i);
        }
    }
#else
    void run(Function kernel) {
        fences(entry, arguments, PROT_NONE, PROT_NONE);
        if (kernel) kernel(arguments);
        fences(entry, arguments, PROT_READ, PROT_READ | PROT_WRITE);
    }
#endif

    // Over words of each tensor that it makes.
    uint64_t sum(uint32_t choice) const {
        uint64_t total = 0;
        for (uint64_t i = 0; i < count; ++i)
            if (is(i, made))
                total += wire::sum(outputs + entry.value(i), entry.bytes(i), choice);
        return total;
    }

private:
    bool is(uint64_t i, wire::Role role) const { return entry.role(i) == role; }

    const Entry& entry;
    const uint64_t count;
    char* const outputs;
    const wire::Role made;
    void* arguments[wire::MAX_ARGUMENTS];
    int integers[wire::MAX_ARGUMENTS];
};

// What a candidate's trampolines are called by; nothing where it has none of this name.
Function find(void* library, const char* name) {
    return library ? reinterpret_cast<Function>(dlsym(library, name)) : nullptr;
}

// Threads that sleep as those of a pool do, one for each CPU beyond this thread's, each bound to its
// own: the referee measures what it takes to stop and to wake them. They are gone, and this thread
// is free again, before the candidate is loaded.
class Sleepers {
public:
    void start() {
        bed.lock();
        if (sched_getaffinity(0, sizeof cpus, &cpus) != 0) wire::give_up("sched_getaffinity");
        for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; ++cpu) {
            if (!CPU_ISSET(cpu, &cpus)) continue;
            if (seen++ == 0)
                bind(cpu);
            else
                threads.emplace_back([this, cpu] { sleep(cpu); });
        }
    }

    void end() {
        if (threads.empty()) return;
        bed.unlock();
        for (auto& thread : threads) thread.join();
        threads.clear();
        sched_setaffinity(0, sizeof cpus, &cpus);
    }

private:
    static void bind(int cpu) {
        cpu_set_t own;
        CPU_ZERO(&own);
        CPU_SET(cpu, &own);
        sched_setaffinity(0, sizeof own, &own);  // where it may not be bound, a pool's are not either
    }

    void sleep(int cpu) {
        bind(cpu);
        bed.lock();
        bed.unlock();
    }

    cpu_set_t cpus;

    std::mutex bed;
    std::vector<std::thread> threads;
};

}  // namespace

#ifdef __SANITIZE_ADDRESS__
// Settings that an environment would hold are here, so that both builds of a candidate find the
// same one. Leaks need ptrace, which the sandbox refuses. Memory that was never set is filled with
// what GCC fills local variables with: as a float -1.7e38, as an index far below zero.
extern "C" const char* __asan_default_options() {
    return "detect_leaks=0:exitcode=86:redzone=2048:max_redzone=2048:quarantine_size_mb=64"
           ":malloc_fill_byte=254:max_malloc_fill_size=1073741824:color=never";
}
extern "C" const char* __ubsan_default_options() { return "exitcode=86:color=never"; }

static void enlarge_stacks() {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 << 20);  // sanitized frames are larger
    if (pthread_setattr_default_np(&attributes) != 0) wire::give_up("pthread_setattr_default_np");
}
#else
static void enlarge_stacks() {}
#endif

int main(int argc, char** argv) {
    if (argc != 10) return wire::USAGE;
    enlarge_stacks();
    const int control = std::atoi(argv[1]);
    const auto in_bytes = std::strtoull(argv[3], nullptr, 10);
    const auto out_bytes = std::strtoull(argv[5], nullptr, 10);
    auto* inputs = wire::map(std::atoi(argv[2]), in_bytes, PROT_READ);
    auto* outputs = wire::map(std::atoi(argv[4]), out_bytes, PROT_READ | PROT_WRITE);
    auto* gate = reinterpret_cast<Gate*>(wire::map(std::atoi(argv[7]), GATE_BYTES, PROT_READ));
    auto* looks = reinterpret_cast<uint32_t*>(
        wire::map(std::atoi(argv[8]), GATE_BYTES, PROT_READ | PROT_WRITE));
    prctl(PR_SET_DUMPABLE, 0);
    if (!wire::tell_refused_calls()) wire::give_up("sigaction");
    wire::install_filter(std::atoi(argv[6]));

    Function entry = nullptr, prepare = nullptr;
    Sleepers sleepers;
    Crew crew;
    wire::write_frame(control, {wire::READY, 0, 0, 0});

    for (wire::Frame frame; wire::read_frame(control, frame);) {
        if (frame.kind == wire::LOAD && !entry) {
            sleepers.end();
            crew.bind();
            if (frame.first) mallopt(M_PERTURB, static_cast<int>(frame.first));
            void* library = dlopen(argv[9], RTLD_NOW | RTLD_LOCAL);
            entry = find(library, "kw_entry");
            if (!entry) std::fprintf(stderr, "%s\n", dlerror());
            prepare = find(library, "kw_prepare");
            wire::write_frame(control, {entry ? wire::READY : wire::REFUSED, frame.nonce, 0, 0});
            continue;
        }
        if (frame.kind == wire::PING) {
            if (!entry) sleepers.start();
            wire::write_frame(control, {wire::PONG, frame.nonce, 0, 0});
            continue;
        }
        // Before LOAD a call is empty: the referee measures what the runner itself takes.
        const bool prepares = frame.kind == wire::PREPARE, many = frame.kind == wire::TOGETHER;
        const uint64_t count = many ? frame.second : 1, times = many ? 1 : frame.second + 1;
        if ((frame.kind != wire::CALL && !prepares && !many) || count == 0 ||
            frame.first >= wire::MAX_SLOTS || count > wire::MAX_SLOTS - frame.first)
            return wire::BROKEN;
        std::deque<Call> calls;  // they point into themselves
        for (uint64_t at = frame.first; at < frame.first + count; ++at)
            calls.emplace_back(reinterpret_cast<const Entry*>(inputs)[at], inputs, outputs,
                               prepares ? wire::SCRATCH : wire::OUTPUT);
        if (many) crew.gather(unsigned(count));
        await(gate, looks, frame.nonce);
        // Both clocks cover the same: on a slow machine the sum alone takes microseconds.
        const uint64_t start = wire::now_ns();
        if (many)
            crew.work([&](unsigned at) { calls[at].run(entry); });
        else
            for (uint64_t made = 0; made < times; ++made) calls[0].run(prepares ? prepare : entry);
        uint64_t sum = 0;
        for (const Call& call : calls) sum += call.sum(gate->choice);
        wire::write_frame(control, {wire::DONE, frame.nonce, wire::now_ns() - start, sum});
    }
    _exit(0);
}
