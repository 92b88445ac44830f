// Splits work over the threads of a rank.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

namespace tilewise {

/// Calls work(0) here and work(1) … work(helpers) on threads that are kept for it; returns when all are done. `work`
/// may not throw.
void run_on_helpers(int helpers, const std::function<void(int thread)>& work);

/// Calls `work(thread)` for thread = 0 … threads−1, each on its own thread, the caller being thread 0; returns when
/// all are done. Rethrows the first exception. To wake a thread costs some 20 µs, so give each a tenth of a millisecond
/// or more.
template <class Work> void parallel(int threads, const Work& work) {
    if (threads <= 1) {
        work(0);
        return;
    }
    std::vector<std::exception_ptr> failures(static_cast<std::size_t>(threads));
    const auto guarded = [&](int thread) {
        try {
            work(thread);
        } catch (...) {
            failures[static_cast<std::size_t>(thread)] = std::current_exception();
        }
    };
    run_on_helpers(threads - 1, std::cref(guarded));
    for (const auto& failure : failures) {
        if (failure) {
            std::rethrow_exception(failure);
        }
    }
}

/// Calls `work(begin, end, thread)` with [0, count) cut into one nearly equal range a thread; ranges may be empty.
template <class Work> void parallel_ranges(int threads, std::int64_t count, const Work& work) {
    parallel(threads, [&](int thread) {
        const std::int64_t begin = count * thread / threads;
        const std::int64_t end = count * (thread + 1) / threads;
        if (begin < end) {
            work(begin, end, thread);
        }
    });
}

/// Calls `work(task, thread)` for task = 0 … count−1, each thread taking the next one that nobody has begun: for tasks
/// that differ in length. After an exception no further task is begun.
template <class Work> void parallel_tasks(int threads, std::int64_t count, const Work& work) {
    std::atomic<std::int64_t> next = 0;
    parallel(static_cast<int>(std::min<std::int64_t>(threads, count)), [&](int thread) {
        try {
            for (std::int64_t task = next++; task < count; task = next++) {
                work(task, thread);
            }
        } catch (...) {
            next = count;
            throw;
        }
    });
}

}  // namespace tilewise
