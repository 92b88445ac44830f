// Strategy `sieve`: each rank reads from the first to the last byte that it wants, through a bounded buffer, and picks
// what is its own.
//
//        file     [ r0 r1 r0 r1 r0 r1 … ]      one large call instead of many small ones:
//        buffer   [ r0 r1 r0 r1 ]              for narrow blocks and block-cyclic layouts
//        share    [ r0 r0 ]
//
// To write, the buffer is read, changed and written back under a lock of those bytes, since neighbours change other
// bytes of the same piece.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>

#include "tilewise/base/buffer.hpp"
#include "tilewise/io/strategy/own_share.hpp"

namespace tilewise::io {
namespace {

constexpr std::int64_t standard_buffer = std::int64_t{512} << 10;  // stays in a core's second-level cache

/// What of a share lies between two borders: its first element, one past its last, and how many there are.
struct Wanted {
    grid::Range span;
    std::int64_t count = 0;
};

Wanted wanted_in(const grid::Share& share, std::int64_t columns, grid::Range within) {
    Wanted wanted;
    grid::for_runs(share, columns, within, [&](std::int64_t first, std::int64_t count, std::int64_t) {
        if (wanted.count == 0) {
            wanted.span.begin = first;
        }
        wanted.span.end = first + count;
        wanted.count += count;
    });
    return wanted;
}

class Sieve final : public OwnShare<PosixFile> {
public:
    Sieve(Context& context, const Transfer& transfer, Direction direction, std::int64_t read_buffer,
          std::int64_t write_buffer)
        : OwnShare(context, transfer, direction, "sieve",
                   [&transfer, direction] { return open_whole(transfer, direction); }),
          buffer_bytes_(direction == Direction::read ? read_buffer : write_buffer) {}

private:
    std::int64_t bytes_read(std::int64_t) const override { return bytes_; }

    std::int64_t serve(grid::Range within) override {
        std::int64_t calls = 0;
        const std::int64_t step = std::max<std::int64_t>(1, buffer_bytes_ / transfer_.item());
        const Buffer buffer(static_cast<std::size_t>(std::min(step, within.size()) * transfer_.item()));
        for (std::int64_t begin = within.begin; begin < within.end; begin += step) {
            const Wanted wanted = wanted_in(share_, transfer_.columns(), {begin, std::min(begin + step, within.end)});
            if (wanted.count > 0) {
                calls += reads() ? read(wanted, buffer.data()) : write(wanted, buffer.data());
            }
        }
        return calls;
    }

    std::int64_t read(const Wanted& wanted, std::byte* buffer) {
        const std::int64_t size = wanted.span.size() * transfer_.item();
        const std::int64_t calls = file_->read(buffer, size, transfer_.at(wanted.span.begin));
        bytes_ += size;
        copy(wanted.span, buffer);
        return calls;
    }

    std::int64_t write(const Wanted& wanted, std::byte* buffer) {
        const std::int64_t size = wanted.span.size() * transfer_.item(), at = transfer_.at(wanted.span.begin);
        const bool holes = wanted.count < wanted.span.size();
        std::int64_t calls = 0;
        const std::lock_guard guard(one_at_a_time_);
        std::optional<RangeLock> lock;
        if (holes) {
            lock.emplace(*file_, at, size);
            calls += file_->read(buffer, size, at);
            bytes_ += size;
        }
        copy(wanted.span, buffer);
        return calls + file_->write(buffer, size, at);
    }

    /// Between the share's memory and a buffer that holds elements `span`.
    void copy(grid::Range span, std::byte* buffer) const {
        grid::for_runs(share_, transfer_.columns(), span,
                       [&](std::int64_t first, std::int64_t count, std::int64_t local) {
                           std::byte* mine = transfer_.data + local * transfer_.item();
                           std::byte* its = buffer + (first - span.begin) * transfer_.item();
                           std::memcpy(reads() ? mine : its, reads() ? its : mine,
                                       static_cast<std::size_t>(count * transfer_.item()));
                       });
    }

    std::int64_t buffer_bytes_;
    std::atomic<std::int64_t> bytes_ = 0;  ///< that were read
    std::mutex one_at_a_time_;             ///< a process's locks do not keep its own threads apart
};

}  // namespace

Strategy make_sieve(const Hints& hints) {
    return strategy_of<Sieve>(buffer_size(hints, "ind_rd_buffer_size", standard_buffer),
                              buffer_size(hints, "ind_wr_buffer_size", standard_buffer));
}

}  // namespace tilewise::io
