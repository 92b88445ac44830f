// One exchange for every pair of distributions: what two shares have in common is again some rows crossed with some
// columns.
//
//     turn k:   each rank sends to the rank k places on, and receives from the one k places back
//     message:  what the sender has of what the receiver wants, row by row, in pieces that fit the buffers
#include "tilewise/io/in_memory.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/io/elements.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::io {
namespace {

using grid::Range;
using grid::Share;

constexpr std::int64_t worth_threads = std::int64_t{1} << 17;  // numbers

/// Neighbouring rows or columns that two shares have in common, and how many of each share's own come before them.
struct Stretch {
    std::int64_t before, in_first, in_second, count;
};

std::vector<Stretch> common_stretches(const std::vector<Range>& first, const std::vector<Range>& second) {
    std::vector<Stretch> found;
    std::int64_t total = 0, before_a = 0, before_b = 0;
    for (std::size_t a = 0, b = 0; a < first.size() && b < second.size();) {
        const Range both = grid::common(first[a], second[b]);
        if (both.size() > 0) {
            found.push_back(
                {total, before_a + both.begin - first[a].begin, before_b + both.begin - second[b].begin, both.size()});
            total += both.size();
        }
        if (first[a].end < second[b].end) {
            before_a += first[a++].size();
        } else {
            before_b += second[b++].size();
        }
    }
    return found;
}

std::int64_t total(const std::vector<Stretch>& all) { return all.empty() ? 0 : all.back().before + all.back().count; }

/// The stretch that holds number `index` of all.
auto stretch_of(const std::vector<Stretch>& all, std::int64_t index) {
    return std::upper_bound(all.begin(), all.end(), index,
                            [](std::int64_t value, const Stretch& stretch) { return value < stretch.before; }) -
           1;
}

template <std::size_t Size>
void copy_items(const std::byte* from, std::int64_t from_step, std::byte* to, std::int64_t to_step,
                std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
        std::memcpy(to + i * to_step, from + i * from_step, Size);
    }
}

/// Numbers of `item` bytes; steps in bytes.
void copy(const std::byte* from, std::int64_t from_step, std::byte* to, std::int64_t to_step, std::int64_t count,
          std::int64_t item) {
    if (from_step == item && to_step == item) {
        std::memcpy(to, from, static_cast<std::size_t>(count * item));
        return;
    }
    constexpr std::array by_size{copy_items<1>, copy_items<2>, copy_items<4>, copy_items<8>, copy_items<16>};
    std::size_t power = 0;
    for (std::int64_t size = 1; size < item; size *= 2) {
        ++power;
    }
    by_size[power](from, from_step, to, to_step, count);
}

/// A share in memory; steps in bytes.
struct Side {
    std::byte* data;
    std::int64_t row_step, step;

    std::byte* at(std::int64_t row, std::int64_t column) const { return data + row * row_step + column * step; }
};

/// Neighbouring numbers of a row: number `at` of what two shares have in common, and where it lies in either.
struct Run {
    std::int64_t at, kept_row, kept_column, row, column, count;
};

/// What a share of the matrix in memory, and a share that somebody wants or gives, have in common.
class Overlap {
public:
    Overlap(const Share& kept, const Share& wanted)
        : rows_(common_stretches(kept.rows, wanted.rows)),
          columns_(common_stretches(kept.columns, wanted.columns)),
          width_(total(columns_)) {}

    std::int64_t size() const { return total(rows_) * width_; }

    /// Calls f(run) for all runs in numbers [begin, end), counted row by row, on so many threads where there are
    /// enough.
    template <class F> void for_runs(std::int64_t begin, std::int64_t end, int threads, F f) const {
        parallel_ranges(end - begin < worth_threads ? 1 : threads, end - begin,
                        [&](std::int64_t from, std::int64_t to, int) { walk(begin + from, begin + to, f); });
    }

private:
    template <class F> void walk(std::int64_t begin, std::int64_t end, const F& f) const {
        auto row = stretch_of(rows_, begin / width_);
        auto column = stretch_of(columns_, begin % width_);
        for (std::int64_t at = begin; at < end;) {
            const std::int64_t down = at / width_ - row->before, right = at % width_ - column->before;
            const std::int64_t count = std::min(column->count - right, end - at);
            f(Run{at, row->in_first + down, column->in_first + right, row->in_second + down, column->in_second + right,
                  count});
            at += count;
            if (++column == columns_.end()) {
                column = columns_.begin();
                row += down + 1 == row->count ? 1 : 0;
            }
        }
    }

    std::vector<Stretch> rows_, columns_;
    std::int64_t width_;
};

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
            overlap.for_runs(0, overlap.size(), context_.threads, [&](const Run& run) {
                std::byte *here = kept.at(run.kept_row, run.kept_column), *there = dense_.at(run.row, run.column);
                reads() ? copy(here, kept.step, there, item_, run.count, item_)
                        : copy(there, item_, here, kept.step, run.count, item_);
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
            overlap.for_runs(part.begin - before, part.end - before, context_.threads, [&](const Run& run) {
                std::byte* mine = from_kept ? side.at(run.kept_row, run.kept_column) : side.at(run.row, run.column);
                packing ? copy(mine, side.step, first + run.at * item_, item_, run.count, item_)
                        : copy(first + run.at * item_, item_, mine, side.step, run.count, item_);
            });
            before += overlap.size();
        }
    }

    void swap_with(int to, const Message& sent, int from, const Message& received) const {
        const std::int64_t step = exchange_bytes / item_;
        for (std::int64_t at = 0; at < std::max(sent.size, received.size); at += step) {
            const std::int64_t incoming = std::min(step, received.size - at), outgoing = std::min(step, sent.size - at);
            Messages arriving(context_, transfer_), leaving(context_, transfer_);
            if (incoming > 0) {
                arriving.receive(incoming_.data(), incoming, from);
            }
            if (outgoing > 0) {
                copy_packed(sent, at, at + outgoing, outgoing_.data(), true);
                leaving.send(outgoing_.data(), outgoing, to);
            }
            arriving.wait();
            if (incoming > 0) {
                copy_packed(received, at, at + incoming, incoming_.data(), false);
            }
            leaving.wait();
        }
    }

    const InMemory& memory_;
    std::int64_t item_;
    Side dense_;
    std::vector<Side> kept_;
    Buffer outgoing_, incoming_;
};

}  // namespace

Strategy make_in_memory() { return strategy_of<Redistribution>(); }

}  // namespace tilewise::io
