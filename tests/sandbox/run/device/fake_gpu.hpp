// The device behind the fake driver: streams that work on their own, and images that it can load.
//
// Each stream has a thread. A task starts when the one before it is done and it was enqueued, takes
// the time that it is said to take, and has its effect at the end of it; so an event holds the time
// at which the stream reached it, and what does not wait reads what is not there yet. The legacy
// stream is one of them: those made with CU_STREAM_NON_BLOCKING are not ordered with it.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace fake {

// Words of FAKE_CUDA, and numbers behind `word=`.
inline std::string asked(const std::string& word) {
    const char* given = std::getenv("FAKE_CUDA");
    const std::string all = "," + std::string(given ? given : "") + ",";
    const auto at = all.find("," + word);
    if (at == std::string::npos) return "";
    const auto from = at + 1 + word.size();
    if (all[from] == ',') return "yes";
    return all[from] == '=' ? all.substr(from + 1, all.find(',', from) - from - 1) : "";
}
inline bool is_broken(const char* how) { return !asked(how).empty(); }
inline double number(const char* word, double usual) {
    const auto value = asked(word);
    return value.empty() ? usual : std::atof(value.c_str());
}

inline double now_us() {
    using namespace std::chrono;
    return duration<double, std::micro>(steady_clock::now().time_since_epoch()).count();
}

// Sleeps through most of it: the tests' machines have few CPUs.
inline void wait_until(double us) {
    for (double left; (left = us - now_us()) > 0;) {
        if (left > 400) std::this_thread::sleep_for(std::chrono::microseconds(int64_t(left - 200)));
        else std::this_thread::yield();
    }
}

static std::atomic<int> sticky{0};  // once set, every call gives it: the context is lost

struct Work {
    double cost_us;
    std::function<void(double)> effect;  // is told when it is done
};

class Stream {
  public:
    Stream() { std::thread([this] { serve(); }).detach(); }

    uint64_t push(Work work) {
        const std::lock_guard lock(mutex_);
        waiting_.push_back({now_us(), std::move(work)});
        changed_.notify_all();
        return ++pushed_;
    }

    // Until a task is done; all that were pushed, unless said.
    void wait_for(uint64_t ticket) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return done_ >= ticket; });
    }
    void drain() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return done_ == pushed_; });
    }

  private:
    struct Task { double enqueued_us; Work work; };

    [[noreturn]] void serve() {
        double ready_us = 0;
        for (;;) {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return !waiting_.empty(); });
            const Task task = std::move(waiting_.front());
            waiting_.pop_front();
            lock.unlock();
            ready_us = std::max(ready_us, task.enqueued_us) + task.work.cost_us;
            wait_until(ready_us);
            if (!sticky) task.work.effect(ready_us);
            lock.lock();
            ++done_;
            changed_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Task> waiting_;
    uint64_t pushed_ = 0, done_ = 0;
};

struct Version { int major = 0, minor = 0; };
inline bool operator<=(Version a, Version b) {
    return std::pair(a.major, a.minor) <= std::pair(b.major, b.minor);
}

// What an image says of itself.
struct Image {
    enum Kind { NONE, CUBIN, PTX } kind = NONE;
    Version sm, release;  // 0: not said
};

inline Version read_version(const char* words, const char* end, const char* before) {
    Version found;
    const auto* at = static_cast<const char*>(memmem(words, size_t(end - words), before, strlen(before)));
    if (at) std::sscanf(at + strlen(before), "%d.%d", &found.major, &found.minor);
    return found;
}

// Cubins of CUDA 12 hold the architecture in the low byte of e_flags; those of 13 have another
// OS/ABI and hold it in the next one. A note names the release.
inline Image read_elf(const char* elf) {
    constexpr unsigned char SINCE_13 = 0x41;
    uint64_t sections = 0;
    uint32_t flags = 0;
    uint16_t count = 0;
    std::memcpy(&sections, elf + 40, 8);
    std::memcpy(&flags, elf + 48, 4);
    std::memcpy(&count, elf + 60, 2);
    const bool is_new = static_cast<unsigned char>(elf[7]) == SINCE_13;
    const int sm = int(is_new ? flags >> 8 & 0xff : flags & 0xff);
    const auto* end = elf + sections + uint64_t(count) * 64;
    auto release = read_version(elf, end, "Cuda compilation tools, release ");
    if (!release.major) release = {is_new ? 13 : 12, 0};
    return {Image::CUBIN, {sm / 10, sm % 10}, release};
}

inline Image read_image(const char* image) {
    const auto* end = image + strlen(image);
    if (!std::strncmp(image, "\x7f" "ELF", 4)) return read_elf(image);
    if (!std::strncmp(image, ".version", 8)) return {Image::PTX, {}, read_version(image, end, ".version ")};
    if (std::strncmp(image, "FAKE", 4)) return {};
    const int sm = read_version(image, end, "sm_").major;
    return {Image::CUBIN, {sm / 10, sm % 10}, read_version(image, end, "release ")};
}

// The error of a driver of this release on this device; by NVIDIA's compatibility guide and driver
// API reference, and for a newer major release by what users report.
inline int refusal(const Image& image, Version driver, Version device) {
    constexpr int INVALID_IMAGE = 200, NO_BINARY_FOR_GPU = 209, UNSUPPORTED_PTX_VERSION = 222;
    if (image.kind == Image::NONE) return INVALID_IMAGE;
    // PTX ISA 8.0 came with CUDA 12.0, and 9.0 with 13.0.
    const Version isa{driver.major - 4, driver.minor};
    if (image.kind == Image::PTX) return image.release <= isa ? 0 : UNSUPPORTED_PTX_VERSION;
    if (image.release.major > driver.major) return INVALID_IMAGE;
    const auto& sm = image.sm;
    const bool fits = !sm.major || (sm.major == device.major && sm.minor <= device.minor);
    return fits ? 0 : NO_BINARY_FOR_GPU;
}

}  // namespace fake
