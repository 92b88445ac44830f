// What the strategies share that serve each rank by itself: run after run of consecutive elements, on all threads of
// the rank.
#pragma once

#include <atomic>
#include <string>

#include "tilewise/base/threads.hpp"
#include "tilewise/io/ahead.hpp"
#include "tilewise/io/strategy.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::io {

inline constexpr std::int64_t worth_threads = std::int64_t{1} << 20;  // bytes

/// Opens the file with open() on every rank that owns something, and calls move(file, share, within) on its threads,
/// each with a part of the elements between the share's first and last; `move` returns how many calls to the system it
/// made. Books time, calls, and the share's bytes. @note Collective.
template <class Open, class Move>
void serve_own_share(Context& context, const Transfer& transfer, bool reading, const std::string& name, Open open,
                     Move move) {
    const Timed timed(context.ledger, context.ledger.phase(), Step::file, name + " " + transfer.region.name);
    const grid::Share share = transfer.share_of(context.comm.rank());
    const std::int64_t bytes = share.size() * transfer.item();
    std::atomic<std::int64_t> calls = 0;
    mpi::together(context.comm, [&] {
        if (bytes == 0) {
            return;
        }
        if (const auto read =
                reading && transfer.ahead != nullptr ? transfer.ahead->take(share, transfer.data) : std::nullopt) {
            calls += *read;
            context.ledger.count().meanwhile += bytes;
            return;
        }
        const auto file = open();
        const grid::Range span = grid::span_of(share, transfer.columns());
        parallel_ranges(bytes < worth_threads ? 1 : context.threads, span.size(),
                        [&](std::int64_t begin, std::int64_t end, int) {
                            calls += move(file, share, grid::Range{span.begin + begin, span.begin + end});
                        });
        if (!reading) {
            file->close();
        }
    });
    Counters& count = context.ledger.count();
    count.io_calls += calls;
    (reading ? count.useful : count.written) += bytes;
}

}  // namespace tilewise::io
