// SPDX-License-Identifier: Apache-2.0
// Threads that make calls at the same time: one for each instance beyond the first, which is whoever
// asks. Each is bound to its share of the CPUs, and with it whatever it starts: where a team of
// threads is not bound by itself, it stays there. Between calls they sleep. crew.py does the same.
//
// While a process is woken the referee keeps its first thread off its own CPU, and then puts back
// what that thread was bound to before: so CPUs are counted at the start, and it is bound as it works.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <sched.h>
#include <thread>
#include <vector>

class Crew {
public:
    // Has so many instances from now on.
    void gather(unsigned instances) {
        count = instances;
        for (unsigned at = 1 + unsigned(threads.size()); at < instances; ++at)
            threads.emplace_back([this, at] { serve(at); });
    }

    // Binds this thread as the first, where there are several.
    void bind() {
        if (count) bind(0);
        is_bound = count > 0;
    }

    // Each instance does its piece; returns once all are done.
    void work(const std::function<void(unsigned)>& piece) {
        {
            const std::lock_guard<std::mutex> held(door);
            task = &piece;
            left = count - 1;
            ++turn;
        }
        begun.notify_all();
        if (!is_bound) bind();
        piece(0);
        std::unique_lock<std::mutex> held(door);
        done.wait(held, [this] { return left == 0; });
    }

private:
    void serve(unsigned at) {
        bind(at);
        for (uint64_t seen = 0;;) {
            const std::function<void(unsigned)>* piece;
            {
                std::unique_lock<std::mutex> held(door);
                begun.wait(held, [&] { return turn != seen; });
                seen = turn;
                piece = task;
            }
            (*piece)(at);
            const std::lock_guard<std::mutex> held(door);
            if (--left == 0) done.notify_one();
        }
    }

    static std::vector<int> usable() {
        cpu_set_t cpus;
        std::vector<int> found;
        if (sched_getaffinity(0, sizeof cpus, &cpus) != 0) return found;
        for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
            if (CPU_ISSET(cpu, &cpus)) found.push_back(cpu);
        return found;
    }

    void bind(unsigned at) const {
        const size_t share = all.size() / count;
        cpu_set_t own;
        CPU_ZERO(&own);
        for (size_t i = at * share; i < (at + 1) * share; ++i) CPU_SET(all[i], &own);
        sched_setaffinity(0, sizeof own, &own);  // where it may not be bound, baselines are not either
    }

    const std::vector<int> all = usable();
    std::vector<std::thread> threads;
    std::mutex door;
    std::condition_variable begun, done;
    const std::function<void(unsigned)>* task = nullptr;
    unsigned count = 0, left = 0;
    bool is_bound = false;
    uint64_t turn = 0;
};
