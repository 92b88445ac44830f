// Binary files as sequences of elements, and the bookkeeping of who owns which of them.
#include "tilewise/io/elements.hpp"

#include <algorithm>

#include "tilewise/io/strategy/uncached.hpp"
#include "tilewise/io/text.hpp"
#include "tilewise/mpi/datatype.hpp"

namespace tilewise::io {
namespace {

using mpi::check;

template <class File> class BinaryElements final : public ElementFile {
public:
    BinaryElements(const Transfer& transfer, Direction direction)
        : offset_(transfer.region.offset),
          item_(transfer.item()),
          file_(transfer.region.path, transfer.region.name, mode_of(direction)) {}

    void read(Counters& count, grid::Range range, std::byte* out) const override {
        count.io_calls += file_.read(out, range.size() * item_, offset_ + range.begin * item_);
        count.read += range.size() * item_;
    }
    void write(Counters& count, grid::Range range, const std::byte* data) const override {
        count.io_calls += file_.write(data, range.size() * item_, offset_ + range.begin * item_);
        count.written += range.size() * item_;
    }

    void close() override { file_.close(); }

private:
    std::int64_t offset_, item_;
    File file_;
};

std::int64_t element_at(const grid::Share& share, std::int64_t columns, std::int64_t local) {
    const auto at = [](const std::vector<grid::Range>& ranges, std::int64_t index) {
        auto range = ranges.begin();
        while (index >= range->size()) {
            index -= (range++)->size();
        }
        return range->begin + index;
    };
    return at(share.rows, local / share.width()) * columns + at(share.columns, local % share.width());
}

}  // namespace

std::unique_ptr<ElementFile> open_elements(const Transfer& transfer, Direction direction, PosixFile::Cache cache,
                                           int threads) {
    if (transfer.text != nullptr) {
        return open_text(transfer, threads);
    }
    if (cache == PosixFile::Cache::bypassed) {
        return std::make_unique<BinaryElements<UncachedFile>>(transfer, direction);
    }
    return std::make_unique<BinaryElements<PosixFile>>(transfer, direction);
}

grid::Range elements_of(const grid::Share& share, std::int64_t columns, std::int64_t begin, std::int64_t end) {
    if (begin >= end) {
        return {0, 0};
    }
    return {element_at(share, columns, begin), element_at(share, columns, end - 1) + 1};
}

Shares::Shares(const Context& context, const Transfer& transfer) : columns(transfer.columns()), item(transfer.item()) {
    for (int rank = 0; rank < context.comm.size(); ++rank) {
        all.push_back(transfer.share_of(rank));
        const grid::Range its = grid::span_of(all.back(), columns);
        if (its.size() > 0) {
            span = span.size() == 0 ? its : grid::Range{std::min(span.begin, its.begin), std::max(span.end, its.end)};
        }
    }
}

bool Shares::contiguous() const {
    for (int rank = 0; rank < static_cast<int>(all.size()); ++rank) {
        const grid::Range its = span_of(rank);
        if (its.size() != count(rank, its)) {
            return false;
        }
    }
    return true;
}

std::int64_t Shares::owned(grid::Range within) const {
    std::int64_t sum = 0;
    for (const grid::Share& share : all) {
        sum += grid::count_in(share, columns, within);
    }
    return sum;
}

void write_owned(const ElementFile& file, Counters& count, const Shares& shares, grid::Range within,
                 const std::byte* file_order) {
    if (shares.owned(within) == within.size()) {
        file.write(count, within, file_order);
        return;
    }
    std::vector<grid::Range> runs;
    for (const grid::Share& share : shares.all) {
        grid::for_runs(share, shares.columns, within, [&](std::int64_t first, std::int64_t elements, std::int64_t) {
            runs.push_back({first, first + elements});
        });
    }
    std::sort(runs.begin(), runs.end(), [](grid::Range a, grid::Range b) { return a.begin < b.begin; });
    for (std::size_t next = 0; next < runs.size();) {
        grid::Range whole = runs[next++];
        while (next < runs.size() && runs[next].begin == whole.end) {
            whole.end = runs[next++].end;
        }
        file.write(count, whole, file_order + (whole.begin - within.begin) * shares.item);
    }
}

Messages::Messages(const Context& context, const Transfer& transfer)
    : comm_(context.comm.get()),
      item_(mpi::type_of(transfer.region.dtype)) {}

void Messages::send(const std::byte* data, std::int64_t count, int rank) {
    requests_.push_back(MPI_REQUEST_NULL);
    check(MPI_Isend(data, static_cast<int>(count), item_, rank, 0, comm_, &requests_.back()), "MPI_Isend");
}

void Messages::receive(std::byte* data, std::int64_t count, int rank) {
    requests_.push_back(MPI_REQUEST_NULL);
    check(MPI_Irecv(data, static_cast<int>(count), item_, rank, 0, comm_, &requests_.back()), "MPI_Irecv");
}

void Messages::wait() {
    check(MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    requests_.clear();
}

namespace {

/// Calls f(rank, place in this rank's share, count) for what it has of the other ranks' ranges.
template <class F>
void for_own(const Context& context, const Transfer& transfer, const Shares& shares,
             const std::vector<grid::Range>& ranges, F f) {
    const int me = context.comm.rank();
    for (int rank = 0; rank < context.comm.size(); ++rank) {
        const grid::Range its = ranges[static_cast<std::size_t>(rank)];
        const std::int64_t count = rank == me ? 0 : shares.count(me, its);
        if (count > 0) {
            f(rank, transfer.data + shares.local(me, its) * shares.item, count);
        }
    }
}

/// Calls f(rank, place in `packed`, count) for what the other ranks have of this one's range.
template <class F>
void for_others(const Context& context, const Shares& shares, grid::Range mine, std::byte* packed, F f) {
    for (int rank = 0; rank < context.comm.size(); ++rank) {
        const std::int64_t count = rank == context.comm.rank() ? 0 : shares.count(rank, mine);
        if (count > 0) {
            f(rank, packed, count);
            packed += count * shares.item;
        }
    }
}

}  // namespace

void gather(const Context& context, const Transfer& transfer, const Shares& shares,
            const std::vector<grid::Range>& ranges, std::byte* packed, std::byte* rows) {
    const int me = context.comm.rank();
    const grid::Range mine = ranges[static_cast<std::size_t>(me)];
    Messages messages(context, transfer);
    for_others(context, shares, mine, packed,
               [&](int rank, std::byte* place, std::int64_t count) { messages.receive(place, count, rank); });
    // What a rank has in a range is consecutive in its memory, so it is sent from where it is.
    for_own(context, transfer, shares, ranges,
            [&](int rank, const std::byte* place, std::int64_t count) { messages.send(place, count, rank); });
    messages.wait();
    unpack(shares, me, mine, transfer.data + shares.local(me, mine) * shares.item, rows);
    for_others(context, shares, mine, packed,
               [&](int rank, const std::byte* place, std::int64_t) { unpack(shares, rank, mine, place, rows); });
}

void scatter(const Context& context, const Transfer& transfer, const Shares& shares,
             const std::vector<grid::Range>& ranges, std::byte* packed,
             const std::function<const std::byte*()>& fetch) {
    const int me = context.comm.rank();
    const grid::Range mine = ranges[static_cast<std::size_t>(me)];
    Messages messages(context, transfer);
    for_own(context, transfer, shares, ranges,
            [&](int rank, std::byte* place, std::int64_t count) { messages.receive(place, count, rank); });
    const std::byte* rows = fetch();
    pack(shares, me, mine, rows, transfer.data + shares.local(me, mine) * shares.item);
    for_others(context, shares, mine, packed, [&](int rank, std::byte* place, std::int64_t count) {
        pack(shares, rank, mine, rows, place);
        messages.send(place, count, rank);
    });
    messages.wait();
}

Bands::Bands(const Transfer& transfer, grid::Range span)
    : span_(span),
      step_(std::max<std::int64_t>(1, bytes / transfer.item())) {
    const std::int64_t line = transfer.region.text ? transfer.region.text->elements() : transfer.columns();
    if (line > 0 && line <= step_) {
        step_ = step_ / line * line;
        span_.begin = span_.begin / line * line;
    }
}

}  // namespace tilewise::io
