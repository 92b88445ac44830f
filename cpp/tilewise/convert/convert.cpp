// Band after band: read, turn, convert, write.
#include "tilewise/convert/convert.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/convert.hpp"
#include "tilewise/kernel/transpose.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::convert {
namespace {

constexpr std::int64_t worth_threads = std::int64_t{1} << 16;  // numbers

/// The bands that a matrix is written in, in the coordinates that it is stored in, and who writes what of each.
///
///     in order                      by panels (a folder of tiles: each rank its own files)
///       band 0  [ r0 | r1 | r2 ]      rank 0  [ band 0 | band 1 ]
///       band 1  [ r0 | r1 | r2 ]      rank 1  [ band 0 | band 1 ]
///
/// Where the order of storage changes, bands are cut into columns too, so that pieces are long on both sides.
class Bands {
public:
    Bands(const io::Region& to, grid::Grid grid, std::int64_t elements, bool turned)
        : rows_(to.stored_rows()),
          columns_(to.stored_columns()),
          grid_(grid),
          by_panels_(!to.tiles.empty() && grid.columns == 1) {
        width_ = std::max<std::int64_t>(1, columns_);
        if (turned && !to.text) {
            const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(elements)));
            width_ = std::min(width_, std::max<std::int64_t>(1, side * grid.columns));
        }
        if (!to.text) {  // rows may be longer than a band
            width_ = std::min(width_, elements * grid.columns);
        }
        const std::int64_t share = (width_ + grid.columns - 1) / grid.columns;
        height_ = std::max<std::int64_t>(1, elements / share);
        const std::int64_t most = by_panels_ ? grid::Partition(rows_, grid.rows).largest() : rows_;
        const std::int64_t band = by_panels_ ? height_ : height_ * grid.rows;
        down_ = (most + band - 1) / band;
        across_ = (columns_ + width_ - 1) / width_;
    }

    std::int64_t count() const { return down_ * across_; }

    grid::Block operator()(std::int64_t index, int rank) const {
        const grid::Place place = grid_.place(rank);
        const std::int64_t row = index / across_, column = index % across_ * width_;
        const grid::Range columns{column, std::min(column + width_, columns_)};
        const grid::Range mine = grid::Partition(columns.size(), grid_.columns)[place.column];
        return {rows(row, place.row), {columns.begin + mine.begin, columns.begin + mine.end}};
    }

private:
    grid::Range rows(std::int64_t band, int part) const {
        if (by_panels_) {
            const grid::Range panel = grid::Partition(rows_, grid_.rows)[part];
            const std::int64_t begin = panel.begin + band * height_;
            return grid::common(panel, {begin, begin + height_});
        }
        const std::int64_t begin = band * height_ * grid_.rows, end = std::min(begin + height_ * grid_.rows, rows_);
        const grid::Range mine = grid::Partition(end - begin, grid_.rows)[part];
        return {begin + mine.begin, begin + mine.end};
    }

    std::int64_t rows_, columns_;
    grid::Grid grid_;
    bool by_panels_;
    std::int64_t width_ = 1, height_ = 1, down_ = 0, across_ = 0;
};

class Run {
public:
    Run(Context& context, const io::Region& from, const io::Region& to, const Options& options)
        : context_(context),
          from_(from),
          to_(to),
          options_(options),
          turned_(from.stored_transposed() != to.stored_transposed()),
          bands_(to, options.grid, elements(), turned_) {
        if (from.wanted_rows() != to.wanted_rows() || from.wanted_columns() != to.wanted_columns()) {
            throw UsageError(from.name + " and " + to.name + " are of different shapes");
        }
        if (options.grid.size() != context.comm.size()) {
            throw UsageError("the grid has " + std::to_string(options.grid.size()) + " places for " +
                             std::to_string(context.comm.size()) + " ranks");
        }
    }

    Outcome operator()() {
        const io::Input input = [&] {
            const Timed timed(context_.ledger, Phase::input, "open");
            return io::Input(context_, from_, options_.read, options_.hints);
        }();
        const Timed writing(context_.ledger, Phase::output, "output");
        io::Output output(context_, to_, options_.write, options_.hints, options_.read_back);
        outcome_.working = false;
        for (std::int64_t band = 0; band < bands_.count(); ++band) {
            const auto wanted = [&](int rank) {
                const grid::Share stored = bands_(band, rank);
                return to_.stored_transposed() ? stored.transposed() : stored;
            };
            const std::int64_t size = wanted(context_.comm.rank()).size();
            outcome_.working = outcome_.working || size > 0;
            read(input, wanted, size);
            std::byte* ready = turn(wanted(context_.comm.rank()));
            ready = change(ready, size);
            output.store(context_, wanted, ready);
            context_.report(Phase::output, static_cast<double>(band + 1) / static_cast<double>(bands_.count()));
        }
        output.finish(context_, options_.sync);
        if (options_.read_back) {
            outcome_.holds = output.holds_what_was_written(context_);
        }
        std::int64_t mine = changed_;
        mpi::check(MPI_Allreduce(&mine, &outcome_.changed, 1, MPI_INT64_T, MPI_SUM, context_.comm.get()),
                   "MPI_Allreduce");
        return outcome_;
    }

private:
    std::int64_t elements() const {
        const auto item = static_cast<std::int64_t>(std::max(size_of(from_.dtype), size_of(to_.dtype)));
        return std::max<std::int64_t>(1, options_.band_bytes / item);
    }

    void read(const io::Input& input, const io::WantedShare& wanted, std::int64_t size) {
        const Timed timed(context_.ledger, Phase::input, "input");
        mpi::together(context_.comm, [&] { make(raw_, size, from_.dtype); });
        input.load_raw(context_, wanted, raw_.data());
    }

    /// From the order in which the source stores a block to the one in which the target does.
    std::byte* turn(const grid::Share& wanted) {
        if (!turned_) {
            return raw_.data();
        }
        const Timed timed(context_.ledger, Phase::compute, "turn");
        const grid::Share stored = from_.stored(wanted);
        mpi::together(context_.comm, [&] {
            make(turned_memory_, stored.size(), from_.dtype);
            const std::size_t item = size_of(from_.dtype);
            const auto size = static_cast<std::int64_t>(item);
            kernel::transpose(raw_.data(), stored.width() * size, stored.height(), stored.width(), item,
                              turned_memory_.data(), stored.height() * size, context_.threads);
        });
        return turned_memory_.data();
    }

    std::byte* change(std::byte* data, std::int64_t size) {
        if (from_.dtype == to_.dtype && from_.swap_bytes == to_.swap_bytes) {
            return data;
        }
        const Timed timed(context_.ledger, Phase::output, Step::convert, "convert");
        mpi::together(context_.comm, [&] {
            make(changed_memory_, size, to_.dtype);
            const auto from_item = static_cast<std::int64_t>(size_of(from_.dtype)),
                       to_item = static_cast<std::int64_t>(size_of(to_.dtype));
            parallel_ranges(size < worth_threads ? 1 : context_.threads, size,
                            [&](std::int64_t begin, std::int64_t end, int) {
                                changed_ += kernel::convert(data + begin * from_item, from_.dtype, from_.swap_bytes,
                                                            changed_memory_.data() + begin * to_item, to_.dtype,
                                                            to_.swap_bytes, end - begin);
                            });
        });
        return changed_memory_.data();
    }

    static void make(Buffer& buffer, std::int64_t count, Dtype dtype) {
        const std::size_t bytes = static_cast<std::size_t>(count) * size_of(dtype);
        if (buffer.bytes() < bytes) {
            buffer = Buffer(bytes);
        }
    }

    Context& context_;
    const io::Region &from_, &to_;
    const Options& options_;
    bool turned_;
    Bands bands_;
    Buffer raw_, turned_memory_, changed_memory_;
    std::atomic<std::int64_t> changed_ = 0;
    Outcome outcome_;
};

}  // namespace

Outcome convert(Context& context, const io::Region& from, const io::Region& to, const Options& options) {
    return Run(context, from, to, options)();
}

}  // namespace tilewise::convert
