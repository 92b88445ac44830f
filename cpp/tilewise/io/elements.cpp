// Binary files as sequences of elements, and the bookkeeping of who owns which of them.
#include "tilewise/io/elements.hpp"

#include <algorithm>

#include "tilewise/io/text.hpp"
#include "tilewise/io/uncached.hpp"

namespace tilewise::io {
namespace {

template <class File> class BinaryElements final : public ElementFile {
public:
    BinaryElements(const Transfer& transfer, PosixFile::Mode mode)
        : offset_(transfer.region.offset),
          item_(transfer.item()),
          file_(transfer.region.path, transfer.region.name, mode) {}

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

}  // namespace

std::unique_ptr<ElementFile> open_elements(const Transfer& transfer, PosixFile::Mode mode, PosixFile::Cache cache,
                                           int threads) {
    if (transfer.text != nullptr) {
        return open_text(transfer, threads);
    }
    if (cache == PosixFile::Cache::bypassed) {
        return std::make_unique<BinaryElements<UncachedFile>>(transfer, mode);
    }
    return std::make_unique<BinaryElements<PosixFile>>(transfer, mode);
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
