// Binary files as sequences of elements, and the bookkeeping of who owns which of them.
#include "tilewise/io/elements.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "tilewise/io/strategy/uncached.hpp"
#include "tilewise/io/text.hpp"

namespace tilewise::io {
namespace {

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

template <std::size_t Size>
void copy_sized(const std::byte* from, std::int64_t from_step, std::byte* to, std::int64_t to_step,
                std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
        std::memcpy(to + i * to_step, from + i * from_step, Size);
    }
}

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

std::unique_ptr<mpi::Exchange> exchange_for(const Context& context, const Transfer& transfer) {
    return mpi::make_exchange(mpi::ExchangeKind::overlap, {.comm = context.comm,
                                                           .ledger = context.ledger,
                                                           .dtype = transfer.region.dtype,
                                                           .agrees = false,
                                                           .counts = false});
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

void copy_items(const std::byte* from, std::int64_t from_step, std::byte* to, std::int64_t to_step, std::int64_t count,
                std::int64_t item) {
    if (from_step == item && to_step == item) {
        std::memcpy(to, from, static_cast<std::size_t>(count * item));
        return;
    }
    constexpr std::array by_size{copy_sized<1>, copy_sized<2>, copy_sized<4>, copy_sized<8>, copy_sized<16>};
    const auto power = static_cast<std::size_t>(std::countr_zero(static_cast<std::uint64_t>(item)));
    by_size.at(power)(from, from_step, to, to_step, count);
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

RangeExchange::RangeExchange(const Context& context, const Transfer& transfer, const Shares& shares)
    : transfer_(transfer),
      shares_(shares),
      me_(context.comm.rank()),
      exchange_(exchange_for(context, transfer)) {
    exchange_->begin(messages_);  // none, so that there is something to wait for
}

/// In the direction of gathering.
void RangeExchange::set_messages(const std::vector<grid::Range>& ranges, std::byte* packed) {
    mine_ = ranges[static_cast<std::size_t>(me_)];
    messages_ = {};
    for (int peer = 0; peer < static_cast<int>(ranges.size()); ++peer) {
        const grid::Range its = ranges[static_cast<std::size_t>(peer)];
        if (peer == me_) {
            continue;
        }
        if (const std::int64_t count = shares_.count(me_, its); count > 0) {
            messages_.out.push_back({peer, 0, 1, count, transfer_.data + shares_.local(me_, its) * shares_.item});
        }
        if (const std::int64_t count = shares_.count(peer, mine_); count > 0) {
            messages_.in.push_back({peer, 0, 1, count, packed});
            packed += count * shares_.item;
        }
    }
}

void RangeExchange::begin_gather(const std::vector<grid::Range>& ranges, std::byte* packed) {
    set_messages(ranges, packed);
    exchange_->start(messages_);
}

void RangeExchange::finish_gather(std::byte* rows) {
    unpack(shares_, me_, mine_, own_place(), rows);
    exchange_->complete([&](std::size_t index, const std::byte* data) {
        unpack(shares_, messages_.in[index].peer, mine_, data, rows);
    });
}

void RangeExchange::begin_scatter(const std::vector<grid::Range>& ranges, std::byte* packed) {
    set_messages(ranges, packed);
    std::swap(messages_.in, messages_.out);
    exchange_->begin(messages_);
}

void RangeExchange::send(const std::byte* rows) {
    pack(shares_, me_, mine_, rows, own_place());
    for (std::size_t index = 0; index < messages_.out.size(); ++index) {
        pack(shares_, messages_.out[index].peer, mine_, rows, messages_.out[index].data);
        exchange_->ready(index);
    }
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
