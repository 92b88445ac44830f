// Consecutive elements of a stored matrix, whatever the file is made of: what rank 0 deals out, and what panels are
// read and written through.
// Design: docs/design/formats.md
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "tilewise/io/file.hpp"
#include "tilewise/io/strategy/strategy.hpp"
#include "tilewise/mpi/exchange/exchange.hpp"

namespace tilewise::io {

class ElementFile {
public:
    ElementFile() = default;
    ElementFile(const ElementFile&) = delete;
    ElementFile& operator=(const ElementFile&) = delete;
    virtual ~ElementFile() = default;

    /// What reading is in the books: waiting for a file, or parsing.
    virtual Step step() const { return Step::file; }
    /// Reads elements [range.begin, range.end), counted row by row, into `out`; books bytes and calls. Throws IoError.
    virtual void read(Counters& count, grid::Range range, std::byte* out) const = 0;
    virtual void write(Counters& count, grid::Range range, const std::byte* data) const = 0;
    /// After the last write. Throws IoError when the system says that something of it is not there.
    virtual void close() {}
};

/// The transfer's file: binary through the page cache or (`bypassed`) past it, or lines of text, which can only be
/// read. Throws IoError.
std::unique_ptr<ElementFile> open_elements(const Transfer& transfer, Direction direction, PosixFile::Cache cache,
                                           int threads);

inline PosixFile::Mode mode_of(Direction direction) {
    return direction == Direction::read ? PosixFile::Mode::read : PosixFile::Mode::write;
}

/// The elements of the stored matrix, row by row, between which elements [begin, end) of a share's memory lie.
grid::Range elements_of(const grid::Share& share, std::int64_t columns, std::int64_t begin, std::int64_t end);

/// The shares of all ranks, and the elements from the first to the last that anybody has.
struct Shares {
    Shares(const Context& context, const Transfer& transfer);

    const grid::Share& operator[](int rank) const { return all[static_cast<std::size_t>(rank)]; }
    std::int64_t count(int rank, grid::Range within) const { return grid::count_in((*this)[rank], columns, within); }
    /// What a rank has in a range of elements is consecutive in its memory, since both are in the same order: where
    /// that begins.
    std::int64_t local(int rank, grid::Range within) const { return count(rank, {0, within.begin}); }
    /// What a rank has, from its first element to its last, with what others have between them.
    grid::Range span_of(int rank) const { return grid::span_of((*this)[rank], columns); }
    /// Whether every rank's share is one piece of the file: then nobody needs anything from anybody.
    bool contiguous() const;
    /// How many elements of a range somebody has.
    std::int64_t owned(grid::Range within) const;

    std::vector<grid::Share> all;
    std::int64_t columns, item;
    grid::Range span;
};

/// Copies what `rank` has in `within` out of `file_order`, which holds those elements in the file's order, to
/// consecutive memory.
inline void pack(const Shares& shares, int rank, grid::Range within, const std::byte* file_order, std::byte* packed) {
    grid::for_runs(shares[rank], shares.columns, within, [&](std::int64_t first, std::int64_t count, std::int64_t) {
        const auto bytes = static_cast<std::size_t>(count * shares.item);
        std::memcpy(packed, file_order + (first - within.begin) * shares.item, bytes);
        packed += bytes;
    });
}

/// The other way.
inline void unpack(const Shares& shares, int rank, grid::Range within, const std::byte* packed, std::byte* file_order) {
    grid::for_runs(shares[rank], shares.columns, within, [&](std::int64_t first, std::int64_t count, std::int64_t) {
        const auto bytes = static_cast<std::size_t>(count * shares.item);
        std::memcpy(file_order + (first - within.begin) * shares.item, packed, bytes);
        packed += bytes;
    });
}

/// Copies `count` numbers of `item` bytes, which lie `from_step` and are to lie `to_step` bytes apart.
void copy_items(const std::byte* from, std::int64_t from_step, std::byte* to, std::int64_t to_step, std::int64_t count,
                std::int64_t item);

/// Writes what anybody has of `within`, gathered in the file's order: in one piece where nothing is missing, else
/// around the gaps.
void write_owned(const ElementFile& file, Counters& count, const Shares& shares, grid::Range within,
                 const std::byte* file_order);

/// What moves sets of messages of a transfer's numbers, each as soon as it is ready; they are in no books. It
/// has no memory, and so cannot fail.
std::unique_ptr<mpi::Exchange> exchange_for(const Context& context, const Transfer& transfer);

/// Between shares and ranges of elements, of which each rank has one in the file's order. What a rank has of a range is
/// consecutive in its share, and goes from there or comes to there; in `packed`, which has room for as many elements as
/// this rank's range, it lies rank by rank. Messages go only between ranks that have something for each other.
class RangeExchange {
public:
    /// `transfer` and `shares` must live longer. All ranks make the same calls, where a failure aborts the job.
    RangeExchange(const Context& context, const Transfer& transfer, const Shares& shares);

    /// What anybody has of elements `ranges[rank]` is on its way to that rank.
    void begin_gather(const std::vector<grid::Range>& ranges, std::byte* packed);
    /// Until it is in `rows`, in the file's order; what nobody has stays as it was there.
    void finish_gather(std::byte* rows);

    /// The other way: messages of what anybody wants of all ranks' ranges may come into its share.
    void begin_scatter(const std::vector<grid::Range>& ranges, std::byte* packed);
    /// This rank's elements, in the file's order, leave.
    void send(const std::byte* rows);
    /// Until all is in the shares, and `packed` may be used again; nothing to wait for if nothing has begun.
    void finish_scatter() { exchange_->complete(); }

private:
    void set_messages(const std::vector<grid::Range>& ranges, std::byte* packed);
    std::byte* own_place() const { return transfer_.data + shares_.local(me_, mine_) * shares_.item; }

    const Transfer& transfer_;
    const Shares& shares_;
    int me_;
    grid::Range mine_;
    mpi::MessageSet messages_;
    std::unique_ptr<mpi::Exchange> exchange_;
};

/// Cuts a span of elements into bands of bounded size, at whole lines where the file has lines: what rank 0 holds at a
/// time when it reads or writes for all.
class Bands {
public:
    static constexpr std::int64_t bytes = std::int64_t{8} << 20;

    Bands(const Transfer& transfer, grid::Range span);

    std::int64_t count() const { return (span_.size() + step_ - 1) / step_; }
    grid::Range operator[](std::int64_t index) const {
        const std::int64_t begin = span_.begin + index * step_;
        return {begin, std::min(begin + step_, span_.end)};
    }
    std::int64_t largest() const { return std::min(step_, span_.size()); }

private:
    grid::Range span_;
    std::int64_t step_;
};

}  // namespace tilewise::io
