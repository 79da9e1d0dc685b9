// SPDX-License-Identifier: Apache-2.0
// The device runner: a fresh process that plays the launches of one built candidate on one GPU.
//
//   device_runner CONTROL_FD INPUT_FD INPUT_BYTES OUTPUT_FD OUTPUT_BYTES FILTER_FD FOLDER LIBCUDA N
//   device_runner play FOLDER LIBCUDA N INPUTS OUTPUT_BYTES CALLS   for a profiler or a sanitizer
//   device_runner probe LIBCUDA N                                   what the device is; is it well?
//
// It speaks the frames of runner.cpp and three more: UPLOAD copies slots to the device, FETCH brings
// their outputs back, REPLAY runs several as one CUDA graph. All host code is ours; the candidate is
// cubins and tables. The system-call filter is installed after the context was made and before any
// cubin is loaded.
//
// A call is timed by events in its stream. The L2 cache is flushed in the same stream right before
// the first event, so that the device is still busy while the host enqueues what is timed, and its
// launch latency is not measured; a frame says how often, since many launches take longer. The
// host's clock is told beside it, less the flush. A call that is to be warm has its inputs copied
// once more behind the flush, so that the cache holds them as far as they fit.
#include <string>

#include "memory.hpp"

namespace {

using cuda::check;
using cuda::driver;

constexpr uint64_t LEAST_FLUSH = 256 << 20, MOST_FLUSHES = 64;
constexpr uint64_t WARM = 1 << 16;  // beside the flushes of a call

class Bench {
  public:
    explicit Bench(cuda::Device device)
        : l2_bytes(uint64_t(cuda::attribute(device, cuda::L2_CACHE_SIZE))) {
        check(driver.stream_create(&stream, cuda::STREAM_NON_BLOCKING), "while a stream was made");
        for (auto& event : events_)
            check(driver.event_create(&event, cuda::EVENT_DEFAULT), "while an event was made");
        // Not known to devices before 8.0, which have nothing to set aside.
        driver.set_limit(cuda::PERSISTING_L2_CACHE_SIZE, 0);
    }

    struct Times { uint64_t event_ns, host_ns; };

    // Runs `work`, which enqueues into the stream, with a cold cache but for what `warm` enqueues.
    template <typename Work> Times time(uint64_t flushes, Work work) {
        return time(flushes, work, [] {});
    }
    template <typename Work, typename Warm> Times time(uint64_t flushes, Work work, Warm warm) {
        flush_from_ = flush_from_ ? flush_from_ : flush_buffer();
        driver.reset_persisting_l2();
        const uint64_t start = wire::now_ns();
        mark(FLUSH);
        for (uint64_t i = 0; i < flushes; ++i)
            check(driver.set_words(flush_from_, ++pattern_, flush_bytes_ / 4, stream),
                  "in the flush");
        warm();
        mark(START);
        work();
        mark(END);
        check(driver.event_synchronize(events_[END]), "while its kernels ran");
        // Nothing that it started may still run when its time is taken.
        check(driver.synchronize(), "while its kernels ran");
        const uint64_t host = wire::now_ns() - start;
        const uint64_t flush = between(FLUSH, START);
        return {between(START, END), host > flush ? host - flush : 0};
    }

    cuda::Handle stream = nullptr;
    const uint64_t l2_bytes;

  private:
    enum Mark { FLUSH, START, END, MARKS };

    void mark(Mark which) { check(driver.event_record(events_[which], stream), "at an event"); }

    uint64_t between(Mark first, Mark last) {
        float ms = 0;
        check(driver.event_elapsed_ms(&ms, events_[first], events_[last]), "while it was timed");
        return ms > 0 ? uint64_t(double(ms) * 1e6) : 0;
    }

    cuda::Address flush_buffer() {
        cuda::Address at = 0;
        for (const uint64_t bytes : {std::max(LEAST_FLUSH, 2 * l2_bytes), 2 * l2_bytes}) {
            flush_bytes_ = std::max<uint64_t>(bytes, 4096);
            if (driver.memory_alloc(&at, flush_bytes_) == cuda::SUCCESS) return at;
        }
        kw::refuse(cuda::DEVICE_FAILED, "no device memory is left to flush the cache with");
    }

    cuda::Handle events_[MARKS] = {};
    cuda::Address flush_from_ = 0;
    uint64_t flush_bytes_ = 0;
    unsigned pattern_ = 0;
};

// Several slots in one graph: the launches follow each other without the host.
Bench::Times replay(Bench& bench, kw::Memory& memory, const kw::Plan& plan, uint64_t first,
                    uint64_t count) {
    cuda::Handle graph = nullptr, ready = nullptr;
    check(driver.capture_begin(bench.stream, cuda::CAPTURE_THREAD_LOCAL), "at a graph's start");
    for (uint64_t i = first; i < first + count; ++i)
        kw::play(memory.slot(i).launches, plan, bench.stream);
    check(driver.capture_end(bench.stream, &graph), "at a graph's end");
    check(driver.graph_instantiate(&ready, graph, 0), "while a graph was made");
    check(driver.graph_upload(ready, bench.stream), "while a graph was made");
    const auto times = bench.time(
        1, [&] { check(driver.graph_launch(ready, bench.stream), "while a graph was launched"); });
    check(driver.graph_exec_destroy(ready), "while a graph was given back");
    check(driver.graph_destroy(graph), "while a graph was given back");
    return times;
}

// Which slots a frame names; ends the process where they are none that it may name now.
void expect(const wire::Frame& frame, kw::Memory& memory, bool is_loaded) {
    const bool is_call = frame.kind == wire::CALL, is_one = is_call || frame.kind == wire::FETCH;
    const uint64_t first = frame.first, count = is_one ? 1 : frame.second;
    const bool is_up = is_one || frame.kind == wire::REPLAY;
    const uint64_t flushes = frame.second & ~WARM;
    if (is_call && (flushes < 1 || flushes > MOST_FLUSHES)) _exit(wire::BROKEN);
    if (first > wire::MAX_SLOTS || count > wire::MAX_SLOTS - first) _exit(wire::BROKEN);
    if ((is_up || frame.kind == wire::UPLOAD) && !is_loaded) _exit(wire::BROKEN);
    for (uint64_t i = first; is_up && i < first + count; ++i)
        if (!memory.slot(i).is_up) _exit(wire::BROKEN);
}

[[noreturn]] void serve(int control, kw::Plan& plan, kw::Memory& memory, Bench& bench) {
    bool is_loaded = false;
    for (wire::Frame frame; wire::read_frame(control, frame);) {
        expect(frame, memory, is_loaded);
        const uint64_t first = frame.first, count = frame.second;
        wire::Frame answer{wire::PONG, frame.nonce, 0, 0};
        switch (frame.kind) {
            case wire::LOAD:
                if (is_loaded) _exit(wire::BROKEN);
                is_loaded = kw::load(plan);
                answer.kind = is_loaded ? wire::READY : wire::REFUSED;
                break;
            case wire::PING:
                // With flushes: all that a call does but the launches, which the referee takes off.
                if (count) bench.time(count, [] {});
                break;
            case wire::UPLOAD: memory.upload(first, count); break;
            case wire::FETCH:
                memory.fetch(first);
                answer.second = memory.sum(first, count);
                break;
            case wire::CALL: {
                const bool is_warm = count & WARM;
                if (is_warm) memory.keep_inputs(first);
                const auto one = bench.time(
                    count & ~WARM,
                    [&] { kw::play(memory.slot(first).launches, plan, bench.stream); },
                    [&] { if (is_warm) memory.lay_inputs(first); });
                answer = {wire::DONE, frame.nonce, one.event_ns, one.host_ns};
                break;
            }
            case wire::REPLAY: {
                const auto all = replay(bench, memory, plan, first, count);
                answer = {wire::DONE, frame.nonce, all.event_ns, all.host_ns};
                break;
            }
            default: _exit(wire::BROKEN);
        }
        wire::write_frame(control, answer);
    }
    _exit(0);
}

int run(char** argv) {
    const int control = std::atoi(argv[1]);
    const auto in_bytes = std::strtoull(argv[3], nullptr, 10);
    const auto out_bytes = std::strtoull(argv[5], nullptr, 10);
    const kw::Host host{wire::map(std::atoi(argv[2]), in_bytes, PROT_READ),
                        wire::map(std::atoi(argv[4]), out_bytes, PROT_READ | PROT_WRITE),
                        in_bytes, out_bytes};
    auto plan = kw::read_plan(argv[7]);
    Bench bench(cuda::open(argv[8], std::atoi(argv[9])));
    kw::Memory memory(plan, host, bench.stream, bench.l2_bytes);
    // It stays dumpable: else the names of its threads, which the driver writes, would be root's.
    wire::install_filter(std::atoi(argv[6]));
    wire::write_frame(control, {wire::READY, 0, 0, 0});
    cuda::status_for_failures = 0;
    serve(control, plan, memory, bench);
}

// The first slot of a file of inputs, called a few times; nothing is timed or told.
int play(char** argv) {
    auto plan = kw::read_plan(argv[2]);
    std::ifstream file(argv[5], std::ios::binary);
    std::string inputs{std::istreambuf_iterator<char>(file), {}};
    std::vector<char> outputs(std::strtoull(argv[6], nullptr, 10));
    if (inputs.size() < sizeof(wire::Entry)) return wire::USAGE;
    const kw::Host host{inputs.data(), outputs.data(), inputs.size(), outputs.size()};
    Bench bench(cuda::open(argv[3], std::atoi(argv[4])));
    kw::Memory memory(plan, host, bench.stream, bench.l2_bytes);
    cuda::status_for_failures = 0;
    if (!kw::load(plan)) return cuda::BAD_PLAN;
    for (long left = std::strtol(argv[7], nullptr, 10); left > 0; --left) {
        memory.upload(0, 1);
        kw::play(memory.slot(0).launches, plan, bench.stream);
        check(driver.synchronize(), "while its kernels ran");
        memory.fetch(0);
    }
    return 0;
}

void require(bool holds, const char* what) {
    if (!holds) kw::refuse(cuda::DEVICE_FAILED, "the device is not well: %s", what);
}

// Sets, copies and compares memory on both sides; then says what the device is, a line each.
int probe(char** argv) {
    const auto device = cuda::open(argv[2], std::atoi(argv[3]));
    constexpr uint64_t WORDS = 4 << 20;
    cuda::Address at[2] = {};
    cuda::Handle stream = nullptr;
    check(driver.stream_create(&stream, cuda::STREAM_NON_BLOCKING), "while a stream was made");
    for (auto& address : at) check(driver.memory_alloc(&address, 4 * WORDS), "at allocation");
    std::vector<unsigned> given(WORDS), found(WORDS);
    for (uint64_t i = 0; i < WORDS; ++i) given[i] = unsigned(i * 2654435761u);
    check(driver.copy_to_device(at[0], given.data(), 4 * WORDS), "while memory was written");
    check(driver.synchronize(), "while memory was written");
    check(driver.copy_on_device(at[1], at[0], 4 * WORDS, stream), "while memory was copied");
    check(driver.set_words(at[0], 0x5eed5eed, WORDS, stream), "while memory was set");
    check(driver.stream_synchronize(stream), "while memory was set");
    check(driver.copy_to_host(found.data(), at[1], 4 * WORDS), "while memory was read");
    require(found == given, "memory does not hold what was copied");
    check(driver.copy_to_host(found.data(), at[0], 4 * WORDS), "while memory was read");
    require(found == std::vector<unsigned>(WORDS, 0x5eed5eed), "memory does not hold what was set");
    for (auto& address : at) check(driver.memory_free(address), "while memory was given back");

    char name[256] = "";
    int version = 0;
    size_t bytes = 0;
    check(driver.device_name(name, sizeof name, device), "while the device was asked");
    check(driver.driver_version(&version), "while the driver was asked");
    check(driver.device_total_memory(&bytes, device), "while the device was asked");
    std::printf("name %s\ncuda %d\nmemory_bytes %zu\n", name, version, bytes);
    const struct { const char* word; cuda::DeviceAttribute which; } asked[] = {
        {"major", cuda::COMPUTE_CAPABILITY_MAJOR}, {"minor", cuda::COMPUTE_CAPABILITY_MINOR},
        {"sms", cuda::MULTIPROCESSOR_COUNT},       {"l2_bytes", cuda::L2_CACHE_SIZE},
        {"has_watchdog", cuda::KERNEL_EXEC_TIMEOUT},
        {"reads_host_memory", cuda::PAGEABLE_MEMORY_ACCESS},
    };
    for (const auto& one : asked)
        std::printf("%s %d\n", one.word, cuda::attribute(device, one.which));
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string mode = argc > 1 ? argv[1] : "";
    if (mode == "probe" && argc == 4) return probe(argv);
    if (mode == "play" && argc == 8) return play(argv);
    return argc == 10 ? run(argv) : int(wire::USAGE);
}
