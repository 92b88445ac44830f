// Whether a rank gets on, as a thread of its own sees it: the beat that the front hears every second.
//
// A rank that waits for others spins inside MPI, and its processor is as busy as if it computed. So a rank has moved
// since the last beat if it has entered or left a call of MPI that may wait, read or written, had pages brought in, or
// computed: outside of such calls, or in other threads.
// Design: docs/design/failures.md
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

namespace tilewise::worker {

/// Milliseconds from one beat to the next: all ranks of a host beat at its clock's whole seconds, so that the front
/// wakes once for all of them.
inline constexpr int beat_every = 1000;

/// For its lifetime the thread that calls MPI is inside a call that may wait for others; without a name it is not said.
class InCall {
public:
    explicit InCall(const char* name) : outer_(name_.load(std::memory_order_relaxed)) { say(name); }
    InCall(const InCall&) = delete;
    InCall& operator=(const InCall&) = delete;
    ~InCall() { say(outer_); }

    /// The innermost call's name, or null. Any thread.
    static const char* name() { return name_.load(std::memory_order_relaxed); }
    /// How many were entered and left. Any thread.
    static std::uint64_t turns() { return turns_.load(std::memory_order_relaxed); }

private:
    static void say(const char* name) {
        name_.store(name, std::memory_order_relaxed);
        turns_.store(turns_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }

    static inline std::atomic<const char*> name_ = nullptr;
    static inline std::atomic<std::uint64_t> turns_ = 0;
    const char* outer_;
};

/// From now on the calling thread is the one whose computing and waiting is looked at.
void look_at_this_thread();

/// Makes beats, each compared with the one before. For one thread, which takes no memory for it.
class Pulse {
public:
    Pulse();
    Pulse(const Pulse&) = delete;
    Pulse& operator=(const Pulse&) = delete;
    ~Pulse();

    /// An event, with its mark and newline; it stands until the next.
    std::string_view beat();

private:
    struct Signs {
        const char* call = nullptr;
        std::uint64_t turns = 0;    ///< of calls
        std::int64_t bytes = 0;     ///< read and written
        std::int64_t faults = 0;    ///< pages that had to be brought in
        std::int64_t computed = 0;  ///< microseconds of the thread that is looked at
        std::int64_t helped = 0;    ///< and of all others but ours
    };
    Signs signs() const;
    static bool moved(const Signs& before, const Signs& now);

    std::array<char, 256> host_{};
    int io_ = -1;  ///< /proc/self/io
    Signs last_;
    int still_ = 0;  ///< beats without a move
    std::array<char, 1536> line_{};
};

}  // namespace tilewise::worker
