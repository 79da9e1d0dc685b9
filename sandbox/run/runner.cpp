// The runner: a fresh process that loads one built candidate and calls it when the referee says so.
//
//   runner CONTROL_FD INPUT_FD INPUT_BYTES OUTPUT_FD OUTPUT_BYTES FILTER_FD GATE_FD ARTEFACT
//
// Inputs are mapped read-only, outputs writable; the call table stands at the start of the inputs.
// It knows no expected value and its word is only a claim. FILTER_FD gives a seccomp program (may
// be empty) that is installed before any of the candidate's code, constructors included, can run.
// The first READY comes before that, so that what fails until then is not the candidate's fault.
//
// A call begins where the referee opens the gate, a word in memory that is watched without sleep,
// and ends with the kernel's stamp on DONE: neither clock is this process's, and no time of waking
// up lies between them. DONE carries a sum over words of the outputs that are chosen as the gate
// opens, so that it cannot well precede them.
//
// Built with the address sanitizer it copies each tensor into a block of its own for the call, so
// that an access right before or after one is seen, reads included. The plain build can make the
// pages before and after a tensor inaccessible for the call; the call table says for which.
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <initializer_list>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

enum Kind : uint32_t {
    READY = 1, CALL = 2, DONE = 3, PING = 4, PONG = 5, REFUSED = 6, LOAD = 7, ARMED = 11
};
// verifier/arena.py holds the same numbers
enum Argument : uint64_t { INTEGER = 0, INPUT = 1, OUTPUT = 2, FENCED = 4 };
constexpr uint64_t MAX_ARGUMENTS = 32;
constexpr uint64_t MAX_SLOTS = 64;
constexpr uint64_t SUMMED_WORDS = 256;  // sandbox/frames.py holds the same
constexpr size_t GATE_BYTES = 4096;

struct Frame { uint32_t kind, nonce; uint64_t first, second; };
struct Gate { uint32_t nonce, choice; };
// Behind the first `count` arguments stand their sizes in bytes, in the same order, as values.
struct Entry {
    uint64_t count;
    struct {
        uint64_t flags, value;
        uint64_t kind() const { return flags & 3; }
        bool is_fenced() const { return flags & FENCED; }
    } arguments[MAX_ARGUMENTS];
};
static_assert(sizeof(Frame) == 24);

#ifdef __SANITIZE_ADDRESS__
constexpr bool SANITIZED = true;
#else
constexpr bool SANITIZED = false;
#endif
constexpr size_t ALIGNMENT = 64;  // what tensors are aligned to in the arena, too

[[noreturn]] void give_up(const char* what) {
    std::fprintf(stderr, "runner: %s: %s\n", what, std::strerror(errno));
    _exit(97);
}

bool read_frame(int fd, Frame& frame) {
    ssize_t got;
    do got = read(fd, &frame, sizeof frame);
    while (got < 0 && errno == EINTR);
    return got == ssize_t(sizeof frame);
}

void write_frame(int fd, const Frame& frame) {
    if (write(fd, &frame, sizeof frame) != ssize_t(sizeof frame)) _exit(98);
}

void* map(int fd, size_t bytes, int protection) {
    void* at = mmap(nullptr, bytes, protection, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (at == MAP_FAILED) give_up("cannot map the data");
    close(fd);
    return at;
}

void install_filter(int fd) {
    static unsigned char bytes[32768];
    size_t held = 0;
    for (ssize_t got; (got = read(fd, bytes + held, sizeof bytes - held)) > 0;) held += size_t(got);
    close(fd);
    if (held == 0) return;
    sock_fprog program{static_cast<unsigned short>(held / sizeof(sock_filter)),
                       reinterpret_cast<sock_filter*>(bytes)};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) give_up("no_new_privs");
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0) give_up("seccomp");
}

void* own_block(const char* from, uint64_t bytes) {
    void* block = nullptr;
    if (posix_memalign(&block, ALIGNMENT, bytes) != 0) give_up("no memory for a tensor");
    std::memcpy(block, from, bytes);
    return block;
}

void fence(const char* tensor, uint64_t bytes, int protection) {
    const auto page = uint64_t(sysconf(_SC_PAGESIZE)), at = reinterpret_cast<uint64_t>(tensor);
    for (const uint64_t beside : {at / page * page - page, (at + bytes + page - 1) / page * page})
        if (mprotect(reinterpret_cast<void*>(beside), page, protection) != 0) give_up("mprotect");
}

// All of a call's fences, with an access for the pages of inputs and one for those of outputs.
void fences(const Entry& called, void** arguments, int of_inputs, int of_outputs) {
    for (uint64_t i = 0; i < called.count; ++i)
        if (called.arguments[i].is_fenced())
            fence(static_cast<char*>(arguments[i]), called.arguments[called.count + i].value,
                  called.arguments[i].kind() == INPUT ? of_inputs : of_outputs);
}

uint64_t now_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
}

// Without sleep, so that no time of waking up is measured. The gate opens within microseconds; who
// yields sooner waits for its next turn on a busy machine, who never does keeps a single CPU.
void await(const Gate* gate, uint32_t nonce) {
    for (unsigned turn = 1; __atomic_load_n(&gate->nonce, __ATOMIC_ACQUIRE) != nonce; ++turn)
        if (turn % 65536 == 0) sched_yield();
}

class Call {
public:
    Call(const Entry& entry, const char* inputs, char* outputs)
        : entry(entry), count(entry.count), outputs(outputs) {
        if (count > MAX_ARGUMENTS / 2) _exit(95);
        for (uint64_t i = 0; i < count; ++i) {
            const auto& argument = entry.arguments[i];
            integers[i] = int(argument.value);
            arguments[i] = argument.kind() == INTEGER ? static_cast<void*>(&integers[i])
                         : argument.kind() == INPUT   ? const_cast<char*>(inputs) + argument.value
                                                    : outputs + argument.value;
        }
    }

    // Nanoseconds in the candidate. Copies are made here: before the gate there are no inputs.
    uint64_t run(void (*kernel)(void**)) {
        for (uint64_t i = 0; SANITIZED && i < count; ++i)
            if (entry.arguments[i].kind() != INTEGER)
                arguments[i] = own_block(static_cast<char*>(arguments[i]), bytes(i));
        if (!SANITIZED) fences(entry, arguments, PROT_NONE, PROT_NONE);
        const uint64_t start = now_ns();
        if (kernel) kernel(arguments);
        const uint64_t spent = now_ns() - start;
        if (!SANITIZED) fences(entry, arguments, PROT_READ, PROT_READ | PROT_WRITE);
        for (uint64_t i = 0; SANITIZED && i < count; ++i) {
            if (entry.arguments[i].kind() == INTEGER) continue;
            if (entry.arguments[i].kind() == OUTPUT)
                std::memcpy(outputs + entry.arguments[i].value, arguments[i], bytes(i));
            std::free(arguments[i]);
        }
        return spent;
    }

    // Of every n-th word of each output, from one that `choice` names, modulo 2^64.
    uint64_t sum(uint32_t choice) const {
        uint64_t total = 0;
        for (uint64_t i = 0; i < count; ++i) {
            if (entry.arguments[i].kind() != OUTPUT) continue;
            const char* at = outputs + entry.arguments[i].value;
            const uint64_t words = bytes(i) / 4, step = words / SUMMED_WORDS + 1;
            for (uint64_t word = choice % step; word < words; word += step) {
                uint32_t held;
                std::memcpy(&held, at + 4 * word, 4);
                total += held;
            }
        }
        return total;
    }

private:
    uint64_t bytes(uint64_t i) const { return entry.arguments[count + i].value; }

    const Entry& entry;
    const uint64_t count;
    char* const outputs;
    void* arguments[MAX_ARGUMENTS];
    int integers[MAX_ARGUMENTS];
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
    if (pthread_setattr_default_np(&attributes) != 0) give_up("pthread_setattr_default_np");
}
#else
static void enlarge_stacks() {}
#endif

int main(int argc, char** argv) {
    if (argc != 9) return 96;
    enlarge_stacks();
    const int control = std::atoi(argv[1]);
    const auto in_bytes = std::strtoull(argv[3], nullptr, 10);
    const auto out_bytes = std::strtoull(argv[5], nullptr, 10);
    auto* inputs = static_cast<char*>(map(std::atoi(argv[2]), in_bytes, PROT_READ));
    auto* outputs = static_cast<char*>(map(std::atoi(argv[4]), out_bytes, PROT_READ | PROT_WRITE));
    auto* gate = static_cast<Gate*>(map(std::atoi(argv[7]), GATE_BYTES, PROT_READ));
    prctl(PR_SET_DUMPABLE, 0);
    install_filter(std::atoi(argv[6]));

    void (*entry)(void**) = nullptr;
    write_frame(control, {READY, 0, 0, 0});

    for (Frame frame; read_frame(control, frame);) {
        if (frame.kind == LOAD && !entry) {
            void* library = dlopen(argv[8], RTLD_NOW | RTLD_LOCAL);
            void* found = library ? dlsym(library, "kw_entry") : nullptr;
            entry = reinterpret_cast<void (*)(void**)>(found);
            if (!entry) std::fprintf(stderr, "%s\n", dlerror());
            write_frame(control, {entry ? READY : REFUSED, frame.nonce, 0, 0});
            continue;
        }
        if (frame.kind == PING) {
            write_frame(control, {PONG, frame.nonce, 0, 0});
            continue;
        }
        // Before LOAD a call is empty: the referee measures what the runner itself takes.
        if (frame.kind != CALL || frame.first >= MAX_SLOTS) return 95;
        Call call(reinterpret_cast<const Entry*>(inputs)[frame.first], inputs, outputs);
        write_frame(control, {ARMED, frame.nonce, 0, 0});
        await(gate, frame.nonce);
        const uint64_t spent = call.run(entry);
        write_frame(control, {DONE, frame.nonce, spent, call.sum(gate->choice)});
    }
    _exit(0);
}
