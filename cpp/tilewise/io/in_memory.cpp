// One exchange for every pair of distributions: what two shares have in common is again some rows crossed with some
// columns.
//
//     turn k:   each rank sends to the rank k places on, and receives from the one k places back
//     message:  what the sender has of what the receiver wants, row by row, in pieces that fit the buffers
//
// Design: docs/design/exchanges.md
#include "tilewise/io/in_memory.hpp"

#include <algorithm>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/io/elements.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::io {
namespace {

using grid::Overlap;
using grid::Range;
using grid::Share;

constexpr std::int64_t worth_threads = std::int64_t{1} << 17;  // numbers

/// A share in memory; steps in bytes.
struct Side {
    std::byte* data;
    std::int64_t row_step, step;

    std::byte* at(Overlap::Position place) const { return data + place.row * row_step + place.column * step; }
};

/// Calls f(run) for all runs in so many numbers of what two shares have in common, on so many threads where there are
/// enough.
template <class F> void for_runs(const Overlap& overlap, Range numbers, int threads, F f) {
    parallel_ranges(numbers.size() < worth_threads ? 1 : threads, numbers.size(),
                    [&](std::int64_t begin, std::int64_t end, int) {
                        overlap.for_runs({numbers.begin + begin, numbers.begin + end}, f);
                    });
}

/// All that goes from one rank to another, one overlap after the other.
struct Message {
    std::vector<Overlap> overlaps;
    std::int64_t size = 0;

    Message(const std::vector<Share>& kept, const Share& wanted) {
        for (const Share& share : kept) {
            overlaps.emplace_back(share, wanted);
            size += overlaps.back().size();
        }
    }
};

class Redistribution final : public OpenFile {
public:
    Redistribution(Context& context, const Transfer& transfer, Direction direction)
        : OpenFile(context, transfer, direction),
          memory_(*transfer.region.memory),
          item_(transfer.item()),
          dense_{transfer.data, transfer.share_of(context.comm.rank()).width() * item_, item_} {
        const bool column_major = transfer.region.column_major;
        for (const LocalShare& local : memory_.mine) {
            kept_.push_back({local.data, (column_major ? local.column_stride : local.row_stride) * item_,
                             (column_major ? local.row_stride : local.column_stride) * item_});
        }
        mpi::together(context.comm, [&] {
            if (memory_.ranks != context.comm.size()) {
                throw UsageError(transfer.region.name + ": lies in the memory of " + std::to_string(memory_.ranks) +
                                 " ranks, and only with all of them can it be read or written, not with " +
                                 std::to_string(context.comm.size()));
            }
            if (context.comm.size() > 1) {
                outgoing_ = Buffer(static_cast<std::size_t>(exchange_bytes));
                incoming_ = Buffer(static_cast<std::size_t>(exchange_bytes));
            }
        });
        exchange_ = exchange_for(context, transfer);
    }

    void move() override {
        const Timed moving = timed(Step::move, "redistribute");
        const int ranks = context_.comm.size(), me = context_.comm.rank();
        for (int turn = 1; turn < ranks; ++turn) {
            const int to = (me + turn) % ranks, from = (me + ranks - turn) % ranks;
            swap_with(to, reads() ? message(me, to) : message(to, me), from,
                      reads() ? message(from, me) : message(me, from));
        }
        const Message own = message(me, me);
        for (std::size_t index = 0; index < own.overlaps.size(); ++index) {
            const Overlap& overlap = own.overlaps[index];
            const Side& kept = kept_[index];
            for_runs(overlap, {0, overlap.size()}, context_.threads, [&](const Overlap::Run& run) {
                std::byte *here = kept.at(run.first), *there = dense_.at(run.second);
                reads() ? copy_items(here, kept.step, there, item_, run.count, item_)
                        : copy_items(there, item_, here, kept.step, run.count, item_);
            });
        }
    }

private:
    /// What `keeper` has in memory of the share that `other` wants or gives.
    Message message(int keeper, int other) const {
        std::vector<Share> kept = memory_.shares_of(keeper);
        if (transfer_.region.column_major) {
            for (Share& share : kept) {
                share = share.transposed();
            }
        }
        return {kept, transfer_.share_of(other)};
    }

    /// Copies numbers [begin, end) of a message between `packed` and whichever side of it this rank has.
    void copy_packed(const Message& message, std::int64_t begin, std::int64_t end, std::byte* packed,
                     bool packing) const {
        const bool from_kept = packing == reads();
        std::int64_t before = 0;
        for (std::size_t index = 0; index < message.overlaps.size(); ++index) {
            const Overlap& overlap = message.overlaps[index];
            const Range part = grid::common({before, before + overlap.size()}, {begin, end});
            const Side& side = from_kept ? kept_[index] : dense_;
            std::byte* first = packed + (before - begin) * item_;
            for_runs(overlap, {part.begin - before, part.end - before}, context_.threads, [&](const Overlap::Run& run) {
                std::byte* mine = side.at(from_kept ? run.first : run.second);
                packing ? copy_items(mine, side.step, first + run.at * item_, item_, run.count, item_)
                        : copy_items(first + run.at * item_, item_, mine, side.step, run.count, item_);
            });
            before += overlap.size();
        }
    }

    void swap_with(int to, const Message& sent, int from, const Message& received) const {
        const std::int64_t step = exchange_bytes / item_;
        for (std::int64_t at = 0; at < std::max(sent.size, received.size); at += step) {
            const std::int64_t incoming = std::min(step, received.size - at), outgoing = std::min(step, sent.size - at);
            mpi::MessageSet messages;
            if (incoming > 0) {
                messages.in.push_back({from, 0, 1, incoming, incoming_.data()});
            }
            if (outgoing > 0) {
                messages.out.push_back({to, 0, 1, outgoing, outgoing_.data()});
            }
            exchange_->begin(messages);
            if (outgoing > 0) {
                copy_packed(sent, at, at + outgoing, outgoing_.data(), true);
                exchange_->ready(0);
            }
            exchange_->complete([&](std::size_t, const std::byte*) {
                copy_packed(received, at, at + incoming, incoming_.data(), false);
            });
        }
    }

    const InMemory& memory_;
    std::int64_t item_;
    Side dense_;
    std::vector<Side> kept_;
    Buffer outgoing_, incoming_;
    std::unique_ptr<mpi::Exchange> exchange_;
};

}  // namespace

Strategy make_in_memory() { return strategy_of<Redistribution>(); }

}  // namespace tilewise::io
