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

#include "tilewise/base/buffer.hpp"
#include "tilewise/io/file.hpp"
#include "tilewise/io/runs.hpp"

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

class Sieve final : public Strategy {
public:
    Sieve(std::int64_t read_buffer, std::int64_t write_buffer)
        : read_buffer_(read_buffer),
          write_buffer_(write_buffer) {}

    void read(Context& context, const Transfer& transfer) const override {
        std::atomic<std::int64_t> bytes = 0;
        serve_own_share(
            context, transfer, true, "sieve",
            [&] {
                return std::make_unique<PosixFile>(transfer.region.path, transfer.region.name, PosixFile::Mode::read);
            },
            [&](const auto& file, const grid::Share& share, grid::Range within) {
                std::int64_t calls = 0;
                for_pieces(transfer, share, within, read_buffer_, [&](const Wanted& wanted, std::byte* buffer) {
                    const std::int64_t size = wanted.span.size() * transfer.item();
                    calls += file->read(buffer, size, transfer.at(wanted.span.begin));
                    bytes += size;
                    copy(transfer, share, wanted.span, buffer, true);
                });
                return calls;
            });
        context.ledger.count().read += bytes;
    }

    void write(Context& context, const Transfer& transfer) const override {
        std::atomic<std::int64_t> bytes = 0;
        std::mutex one_at_a_time;  // a process's locks do not keep its own threads apart
        serve_own_share(
            context, transfer, false, "sieve",
            [&] {
                return std::make_unique<PosixFile>(transfer.region.path, transfer.region.name, PosixFile::Mode::write);
            },
            [&](const auto& file, const grid::Share& share, grid::Range within) {
                std::int64_t calls = 0;
                for_pieces(transfer, share, within, write_buffer_, [&](const Wanted& wanted, std::byte* buffer) {
                    const std::int64_t size = wanted.span.size() * transfer.item(), at = transfer.at(wanted.span.begin);
                    const bool holes = wanted.count < wanted.span.size();
                    const std::lock_guard guard(one_at_a_time);
                    if (holes) {
                        file->lock(at, size);
                        calls += file->read(buffer, size, at);
                        bytes += size;
                    }
                    copy(transfer, share, wanted.span, buffer, false);
                    calls += file->write(buffer, size, at);
                    if (holes) {
                        file->unlock(at, size);
                    }
                });
                return calls;
            });
        context.ledger.count().read += bytes;
    }

private:
    /// Calls f(what is wanted, buffer) for pieces of `within` that fit the buffer and hold something wanted.
    template <class F>
    static void for_pieces(const Transfer& transfer, const grid::Share& share, grid::Range within, std::int64_t bytes,
                           F f) {
        const std::int64_t step = std::max<std::int64_t>(1, bytes / transfer.item());
        const Buffer buffer(static_cast<std::size_t>(std::min(step, within.size()) * transfer.item()));
        for (std::int64_t begin = within.begin; begin < within.end; begin += step) {
            const Wanted wanted = wanted_in(share, transfer.columns(), {begin, std::min(begin + step, within.end)});
            if (wanted.count > 0) {
                f(wanted, buffer.data());
            }
        }
    }

    static void copy(const Transfer& transfer, const grid::Share& share, grid::Range span, std::byte* buffer,
                     bool reading) {
        grid::for_runs(share, transfer.columns(), span,
                       [&](std::int64_t first, std::int64_t count, std::int64_t local) {
                           std::byte* mine = transfer.data + local * transfer.item();
                           std::byte* its = buffer + (first - span.begin) * transfer.item();
                           std::memcpy(reading ? mine : its, reading ? its : mine,
                                       static_cast<std::size_t>(count * transfer.item()));
                       });
    }

    std::int64_t read_buffer_, write_buffer_;
};

}  // namespace

std::unique_ptr<Strategy> make_sieve(const Hints& hints) {
    return std::make_unique<Sieve>(buffer_size(hints, "ind_rd_buffer_size", standard_buffer),
                                   buffer_size(hints, "ind_wr_buffer_size", standard_buffer));
}

}  // namespace tilewise::io
