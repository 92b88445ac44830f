// Panels out of mapped pages, by pread into a buffer that stays in the cache, or, for what is no single binary file, as
// every other command reads it.
#include "tilewise/svd/panels.hpp"

#include <algorithm>
#include <fcntl.h>
#include <unistd.h>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/codec/convert.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/svd/svd.hpp"

namespace tilewise::svd {
namespace {

constexpr std::int64_t ahead_bytes = std::int64_t{128} << 10;

std::int64_t item_of(Dtype dtype) { return static_cast<std::int64_t>(size_of(dtype)); }

/// What is read to be proved belongs to the proof.
Phase reading_phase(const Context& context) {
    return context.ledger.phase() == Phase::verify ? Phase::verify : Phase::input;
}

/// Asks the system to read what will be wanted soon; whether it does is its own affair.
class ReadAhead {
public:
    explicit ReadAhead(const std::string& path) : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
    ReadAhead(const ReadAhead&) = delete;
    ReadAhead& operator=(const ReadAhead&) = delete;
    ~ReadAhead() {
        if (descriptor_ >= 0) {
            close(descriptor_);
        }
    }
    void want(std::int64_t offset, std::int64_t bytes) const {
        if (descriptor_ >= 0) {
            posix_fadvise(descriptor_, offset, bytes, POSIX_FADV_WILLNEED);
        }
    }

private:
    int descriptor_;
};

template <class T> void scale(std::byte* data, std::int64_t count, double factor) {
    T* numbers = reinterpret_cast<T*>(data);
    for (std::int64_t i = 0; i < count; ++i) {
        numbers[i] = static_cast<T>(numbers[i] * factor);
    }
}

void scale(Dtype type, std::byte* data, std::int64_t count, double factor) {
    const std::int64_t reals = is_complex(type) ? 2 * count : count;
    real_type(type) == Dtype::float32 ? scale<float>(data, reals, factor) : scale<double>(data, reals, factor);
}

}  // namespace

struct Panels::Lane {
    /// `reads`: with calls, and not out of mapped pages; else nothing is opened for a file that all ranks read
    /// together.
    Lane(const io::Region& region, bool for_itself, bool reads) {
        if (for_itself) {
            ahead = std::make_unique<ReadAhead>(region.path);
        }
        if (reads) {
            file = std::make_unique<io::PosixFile>(region.path, region.name, io::PosixFile::Mode::read);
        }
    }

    Array<std::byte> raw, panel;
    std::unique_ptr<io::PosixFile> file;
    std::unique_ptr<ReadAhead> ahead;
    std::int64_t bytes = 0, calls = 0;
    bool booked = false;  ///< on the thread that keeps the books
};

Panels::Panels(Context& context, const io::Region& region, Dtype type, const PanelOptions& options)
    : region_(region),
      type_(type),
      ranks_(context.comm.size()),
      rank_(context.comm.rank()),
      threads_(context.threads),
      mapped_(options.read == io::StrategyKind::mapped && region.is_one_file() && region.bytes() > 0) {
    mpi::together(context.comm, [&] {
        if (is_complex(region.dtype) && !is_complex(type)) {
            throw UsageError(region.name + ": a decomposition needs real numbers, not " +
                             std::string(name_of(region.dtype)));
        }
    });
    const bool for_itself = region.is_one_file() && (mapped_ || options.read == io::StrategyKind::positioned);
    if (!for_itself) {
        input_ = std::make_unique<io::Input>(context, region, options.read, options.hints);
    } else {
        io::check_file(context, region);
    }
    const int node_ranks = context.comm.node().size();
    choose_shape(options, node_ranks);
    mpi::together(context.comm, [&] {
        if (mapped_) {
            mapping_ = io::Mapping(region, io::Direction::read);
        }
        for (int lane = 0; lane < lanes_; ++lane) {
            states_.push_back(std::make_unique<Lane>(region, for_itself, for_itself && !mapped_));
        }
        states_.front()->booked = true;
    });
}

Panels::~Panels() = default;

void Panels::choose_shape(const PanelOptions& options, int node_ranks) {
    const std::int64_t rows = region_.stored_rows(), columns = region_.stored_columns(), item = item_of(type_);
    by_columns_ = options.axis == PanelAxis::columns ||
                  (options.axis == PanelAxis::longer && !by_all() && rows < columns && rows <= most_pieces);
    height_ = by_columns_ ? columns : rows;
    width_ = by_columns_ ? rows : columns;
    lanes_ = options.lanes > 0                                                 ? options.lanes
             : by_all() || width_ * options.vectors * item > lane_vector_bytes ? 1
                                                                               : threads_;
    // What goes with a row in the cache: itself, or a product of it with each vector, which is more where the view is
    // narrow.
    const std::int64_t row_bytes = std::max<std::int64_t>(1, width_ * item),
                       cached = std::max(row_bytes, options.vectors * item),
                       wanted = lanes_ < threads_ || by_all() ? shared_panel_bytes : lane_panel_bytes;
    panel_rows_ = std::max(wanted / cached, by_columns_ ? piece_bytes / item_of(region_.dtype) : least_panel_rows);
    if (options.bytes > 0) {
        const bool converts = region_.dtype != type_ || region_.swap_bytes;
        const std::int64_t row = row_bytes + (converts ? width_ * item_of(region_.dtype) : 0);
        panel_rows_ = std::min(panel_rows_, options.bytes / node_ranks / lanes_ / std::max<std::int64_t>(1, row));
    }
    panel_rows_ = std::clamp<std::int64_t>(panel_rows_, 1, std::max<std::int64_t>(1, height_));
}

grid::Range Panels::mine() const { return grid::Partition(height_, ranks_)[rank_]; }

std::int64_t Panels::bytes_of_lane() const {
    const bool in_place = mapped_ && factor_ == 1 && io::usable_in_place(region_, type_);
    const bool raw = !by_all() && !mapped_ && (region_.dtype != type_ || region_.swap_bytes);
    return panel_rows_ * width_ * ((in_place ? 0 : item_of(type_)) + (raw ? item_of(region_.dtype) : 0));
}

void Panels::walk(Context& context, std::int64_t chunk, const Use& use) {
    by_all() ? walk_together(context, chunk, use) : walk_lanes(context, chunk, use);
}

void Panels::walk_lanes(Context& context, std::int64_t chunk, const Use& use) {
    const grid::Range rows = mine();
    mpi::together(context.comm, [&] {
        parallel_ranges(
            lanes_, (rows.size() + chunk - 1) / chunk, [&](std::int64_t begin, std::int64_t end, int index) {
                Lane& lane = *states_[static_cast<std::size_t>(index)];
                for (std::int64_t at = begin; at < end; ++at) {
                    const std::int64_t first = rows.begin + at * chunk, last = std::min(first + chunk, rows.end);
                    for (std::int64_t row = first; row < last; row += panel_rows_) {
                        const grid::Range panel{row, std::min(row + panel_rows_, last)};
                        use(index, panel, get(context, lane, panel));
                    }
                    if (lane.booked) {
                        context.report(context.ledger.phase(),
                                       static_cast<double>(at + 1 - begin) / static_cast<double>(end - begin));
                    }
                }
            });
        Counters& count = context.ledger.count();
        for (const auto& lane : states_) {
            count.read += std::exchange(lane->bytes, 0);
            count.io_calls += std::exchange(lane->calls, 0);
        }
        count.useful += rows.size() * width_ * item_of(region_.dtype);
    });
    io::check_file(context, region_);
}

void Panels::walk_together(Context& context, std::int64_t chunk, const Use& use) {
    const grid::Range rows = mine();
    std::vector<grid::Range> panels;
    for (std::int64_t first = rows.begin; first < rows.end; first += chunk) {
        const std::int64_t last = std::min(first + chunk, rows.end);
        for (std::int64_t row = first; row < last; row += panel_rows_) {
            panels.push_back({row, std::min(row + panel_rows_, last)});
        }
    }
    const auto most = mpi::most_of<std::int64_t>(context.comm, std::ssize(panels));
    // Every rank has to know what the others read: their ranges follow from their number.
    std::vector<grid::Range> wanted(static_cast<std::size_t>(ranks_));
    Lane& lane = *states_.front();
    for (std::int64_t index = 0; index < most; ++index) {
        const grid::Range own = index < std::ssize(panels) ? panels[static_cast<std::size_t>(index)] : grid::Range{};
        mpi::check(MPI_Allgather(&own, 2, MPI_INT64_T, wanted.data(), 2, MPI_INT64_T, context.comm.get()),
                   "MPI_Allgather");
        const auto share = [&](int rank) -> grid::Share {
            const grid::Range range = wanted[static_cast<std::size_t>(rank)];
            const grid::Block stored{range, {0, range.size() > 0 ? width_ : 0}};
            return region_.stored_transposed() ? stored.transposed() : stored;
        };
        const std::int64_t numbers_here = own.size() * width_;
        std::byte* data = nullptr;
        mpi::together(context.comm,
                      [&] { data = lane.panel.grow(numbers_here * std::max(item_of(type_), item_of(region_.dtype))); });
        const Phase outer = context.ledger.phase();
        const Timed timed(context.ledger, reading_phase(context), "read panel of " + region_.name);
        if (size_of(region_.dtype) <= size_of(type_)) {
            input_->load(context, type_, share, data);
        } else {
            input_->load_raw(context, share, data);
        }
        const Timed computing(context.ledger, outer, "multiply panel of " + region_.name);
        mpi::together(context.comm, [&] {
            if (own.size() == 0) {
                return;
            }
            kernel::Operand panel{data, width_, false};
            if (size_of(region_.dtype) > size_of(type_)) {
                lane.raw = Array<std::byte>(numbers_here * item_of(type_));
                kernel::convert(data, region_.dtype, region_.swap_bytes && region_.generator.empty(), lane.raw.data(),
                                type_, false, numbers_here);
                panel.data = lane.raw.data();
            }
            if (factor_ != 1) {
                auto* values = const_cast<std::byte*>(panel.data);
                scale(type_, values, numbers_here, factor_);
            }
            use(0, own, panel);
        });
        context.report(context.ledger.phase(), static_cast<double>(index + 1) / static_cast<double>(most));
    }
}

kernel::Operand Panels::take(Context& context, int lane, grid::Range rows) const {
    return get(context, *states_[static_cast<std::size_t>(lane)], rows);
}

kernel::Operand Panels::get(Context& context, Lane& lane, grid::Range rows) const {
    const std::int64_t stored_columns = region_.stored_columns(), item = item_of(region_.dtype);
    if (mapped_) {
        const std::int64_t first = by_columns_ ? rows.begin : rows.begin * stored_columns;
        lane.bytes += rows.size() * width_ * item;
        want_next(lane, rows);
        return numbers(lane, mapping_.data() + first * item, stored_columns, rows);
    }
    std::optional<Timed> timed;
    if (lane.booked) {
        timed.emplace(context.ledger, reading_phase(context), Step::file, "");
    }
    const bool as_it_is = region_.dtype == type_ && !region_.swap_bytes;
    const std::int64_t bytes = rows.size() * width_ * item;
    std::byte* raw = (as_it_is ? lane.panel : lane.raw).grow(bytes);
    lane.calls += read(raw, *lane.file, rows);
    lane.bytes += bytes;
    want_next(lane, rows);
    return numbers(lane, raw, by_columns_ ? rows.size() : width_, rows);
}

std::int64_t Panels::read(std::byte* to, const io::PosixFile& file, grid::Range rows) const {
    const std::int64_t columns = region_.stored_columns(), item = item_of(region_.dtype);
    const int threads = threads_of_lane();
    std::vector<std::int64_t> calls(static_cast<std::size_t>(threads));
    if (!by_columns_) {
        const std::int64_t row_bytes = columns * item;
        parallel_ranges(threads, rows.size(), [&](std::int64_t begin, std::int64_t end, int thread) {
            calls[static_cast<std::size_t>(thread)] += file.read(to + begin * row_bytes, (end - begin) * row_bytes,
                                                                 region_.offset + (rows.begin + begin) * row_bytes);
        });
    } else {
        parallel_ranges(threads, width_, [&](std::int64_t begin, std::int64_t end, int thread) {
            for (std::int64_t row = begin; row < end; ++row) {
                calls[static_cast<std::size_t>(thread)] +=
                    file.read(to + row * rows.size() * item, rows.size() * item,
                              region_.offset + (row * columns + rows.begin) * item);
            }
        });
    }
    std::int64_t all = 0;
    for (const std::int64_t some : calls) {
        all += some;
    }
    return all;
}

void Panels::want_next(const Lane& lane, grid::Range rows) const {
    const std::int64_t columns = region_.stored_columns(), item = item_of(region_.dtype),
                       next = std::min(panel_rows_, mine().end - rows.end);
    if (next <= 0) {
        return;
    }
    if (!by_columns_) {
        lane.ahead->want(region_.offset + rows.end * columns * item, next * columns * item);
        return;
    }
    // Pieces are short: they are asked for in windows that the device likes better, when the panels enter the one
    // before.
    const std::int64_t window = std::max(panel_rows_, ahead_bytes / item);
    if (rows.begin / window != rows.end / window || rows.begin == mine().begin) {
        const std::int64_t begin = rows.end, wide = std::min(2 * window, mine().end - begin);
        for (std::int64_t row = 0; row < width_; ++row) {
            lane.ahead->want(region_.offset + (row * columns + begin) * item, wide * item);
        }
    }
}

/// Raw numbers, rows of the file `stride` apart, as an operand of the type that is computed in.
kernel::Operand Panels::numbers(Lane& lane, const std::byte* raw, std::int64_t stride, grid::Range rows) const {
    const bool as_it_is = region_.dtype == type_ && !region_.swap_bytes;
    const bool aligned = reinterpret_cast<std::uintptr_t>(raw) % size_of(type_) == 0;
    if (as_it_is && aligned && factor_ == 1) {
        return {raw, stride, by_columns_};
    }
    const std::int64_t high = by_columns_ ? width_ : rows.size(), wide = by_columns_ ? rows.size() : width_,
                       item = item_of(region_.dtype);
    std::byte* to = raw == lane.panel.data() ? lane.panel.data() : lane.panel.grow(high * wide * item_of(type_));
    parallel_ranges(threads_of_lane(), high, [&](std::int64_t begin, std::int64_t end, int) {
        if (raw == to) {
            return;
        }
        for (std::int64_t row = begin; row < end; ++row) {
            kernel::convert(raw + row * stride * item, region_.dtype, region_.swap_bytes,
                            to + row * wide * item_of(type_), type_, false, wide);
        }
    });
    if (factor_ != 1) {
        scale(type_, to, high * wide, factor_);
    }
    return {to, wide, by_columns_};
}

}  // namespace tilewise::svd
