// Events: one JSON object a line on standard output, marked as ours by a leading record separator.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>

#include "tilewise/base/error.hpp"
#include "tilewise/base/ledger.hpp"
#include "tilewise/worker/json.hpp"

namespace tilewise::worker {

/// Writes one event in one system call, so that lines of several ranks do not mix.
void emit(const Json& event);

/// `aborts`: the others do not know of it, and the rank is about to end the job.
void emit_error(const Error& error, int rank, bool aborts = false);

/// At most ten progress events a second, but for the first of each phase.
class ProgressMeter {
public:
    void operator()(Phase phase, double done);
    /// Says that a phase goes on, or begins, where nobody reports how far it is.
    void enter(Phase phase) { (*this)(phase, done_[static_cast<std::size_t>(phase)]); }

private:
    std::chrono::steady_clock::time_point last_{};
    std::array<bool, phase_count> seen_{};
    std::array<double, phase_count> done_{};
};

}  // namespace tilewise::worker
