// Helpers that stay: each is a thread that spins for a moment after its work, then sleeps until there is more.
//
//     caller    ── gives ──▶ work(0) ──────▶ waits ──▶        A new thread may wait for milliseconds beside its maker
//     helper 1      └──▶ work(1) ──▶ spins … sleeps           before the system moves it to an idle processor; a
//     helper 2      └──▶ work(2) ───────▶ spins …             helper begins on another than the caller's.
#include "tilewise/base/threads.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unistd.h>

#if defined(__linux__)
#include <sched.h>
#endif

namespace tilewise {
namespace {

constexpr std::chrono::microseconds spinning{200};

/// A count that one thread raises and another waits for: awake for a moment, then asleep.
class Count {
public:
    void raise() {
        {
            const std::lock_guard lock(mutex_);
            value_.fetch_add(1, std::memory_order_release);
        }
        raised_.notify_one();
    }

    /// Waits until it is more than `old`.
    void await(std::uint32_t old) {
        const auto changed = [&] { return value_.load(std::memory_order_acquire) != old; };
        const auto end = std::chrono::steady_clock::now() + spinning;
        do {
            for (int i = 0; i < 32; ++i) {
                if (changed()) {
                    return;
                }
#if defined(__x86_64__)
                __builtin_ia32_pause();
#endif
            }
        } while (std::chrono::steady_clock::now() < end);
        std::unique_lock lock(mutex_);
        raised_.wait(lock, changed);
    }

private:
    std::atomic<std::uint32_t> value_ = 0;
    std::mutex mutex_;
    std::condition_variable raised_;
};

/// Where helpers may run: where the process may, but for the caller's own processor, if there are enough of them.
class Processors {
public:
    Processors() = default;
#if defined(__linux__)
    explicit Processors(int helpers) {
        const int here = sched_getcpu();
        known_ = here >= 0 && sched_getaffinity(getpid(), sizeof set_, &set_) == 0;
        if (known_ && CPU_COUNT(&set_) > helpers) {
            CPU_CLR(static_cast<unsigned>(here), &set_);
        }
    }

    /// Moves a thread from here to there.
    void move(std::thread::native_handle_type thread, const Processors& there) {
        if (there.known_ && !(known_ && CPU_EQUAL(&set_, &there.set_))) {
            pthread_setaffinity_np(thread, sizeof there.set_, &there.set_);
            *this = there;
        }
    }

private:
    cpu_set_t set_{};
    bool known_ = false;
#else
    explicit Processors(int) {}
    void move(std::thread::native_handle_type, const Processors&) {}
#endif
};

class Helper {
public:
    Helper() {
        std::thread thread([this] { run(); });
        handle_ = thread.native_handle();
        thread.detach();
    }
    Helper(const Helper&) = delete;
    Helper& operator=(const Helper&) = delete;

    void begin(const std::function<void(int)>& work, int number, const Processors& processors) {
        processors_.move(handle_, processors);
        work_ = &work;
        number_ = number;
        ++begun_;
        given_.raise();
    }

    void end() { finished_.await(begun_ - 1); }

private:
    void run() {
        for (std::uint32_t done = 0;; ++done) {
            given_.await(done);
            (*work_)(number_);
            finished_.raise();
        }
    }

    Count given_, finished_;
    std::uint32_t begun_ = 0;  // of the caller's
    const std::function<void(int)>* work_ = nullptr;
    int number_ = 0;
    Processors processors_;
    std::thread::native_handle_type handle_ = {};
};

/// Those that have nothing to do. They are never freed: they may still be on their way to sleep when the process ends.
class Stock {
public:
    std::vector<Helper*> take(std::size_t count) {
        std::vector<Helper*> taken;
        taken.reserve(count);
        const std::lock_guard lock(mutex_);
        if (process_ != getpid()) {  // after a fork there are none
            process_ = getpid();
            idle_.clear();
        }
        while (taken.size() < count && !idle_.empty()) {
            taken.push_back(idle_.back());
            idle_.pop_back();
        }
        while (taken.size() < count) {
            taken.push_back(std::make_unique<Helper>().release());
        }
        return taken;
    }

    void give_back(const std::vector<Helper*>& taken) {
        const std::lock_guard lock(mutex_);
        idle_.insert(idle_.end(), taken.rbegin(), taken.rend());
    }

    static Stock& one() {
        static Stock& stock = *new Stock;
        return stock;
    }

private:
    std::mutex mutex_;
    std::vector<Helper*> idle_;
    pid_t process_ = getpid();
};

}  // namespace

void run_on_helpers(int helpers, const std::function<void(int)>& work) {
    const std::vector<Helper*> taken = Stock::one().take(static_cast<std::size_t>(helpers));
    const Processors processors(helpers);
    for (std::size_t i = 0; i < taken.size(); ++i) {
        taken[i]->begin(work, static_cast<int>(i) + 1, processors);
    }
    work(0);
    for (Helper* helper : taken) {
        helper->end();
    }
    Stock::one().give_back(taken);
}

}  // namespace tilewise
