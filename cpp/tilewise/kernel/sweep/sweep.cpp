// Finds the form of a stencil's weights, cuts a sweep into pieces for threads, and hands them to the code for this
// processor.
#include "tilewise/kernel/sweep/sweep.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "tilewise/base/error.hpp"
#include "tilewise/base/memory.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/base/work.hpp"
#include "tilewise/kernel/isa/backend.hpp"

namespace tilewise::kernel {
namespace {

constexpr std::int64_t cache_line = 64;
constexpr std::int64_t worth_a_thread = std::int64_t{1} << 20;   // points times steps: below, starting it costs more
constexpr std::int64_t worth_streaming = std::int64_t{8} << 20;  // bytes: below, a cache holds both fields
/// Of a strip's row: the rows that a block needs at once then about fit into a first-level cache, and what is saved of
/// all levels into a second-level one. Strips of float64 are wider than that: they would have few columns of their own.
constexpr std::int64_t strip_columns(Dtype dtype) { return dtype == Dtype::float32 ? 896 : 640; }

constexpr std::int64_t up(std::int64_t count, std::int64_t unit) { return (count + unit - 1) / unit * unit; }

double weight(const Weights& weights, int dy, int dx) {
    const int r = weights.radius;
    return weights.values[static_cast<std::size_t>((dy + r) * (2 * r + 1) + dx + r)];
}

SumForm form_of(const Weights& weights) {
    const int r = weights.radius;
    bool star = true, symmetric = true;
    for (int dy = -r; dy <= r; ++dy) {
        for (int dx = -r; dx <= r; ++dx) {
            const double w = weight(weights, dy, dx);
            star = star && (dy == 0 || dx == 0 || w == 0);
            symmetric = symmetric && w == weight(weights, -dy, dx) && w == weight(weights, dy, -dx);
        }
    }
    return star ? (symmetric ? SumForm::star_symmetric : SumForm::star)
                : (symmetric ? SumForm::box_symmetric : SumForm::box);
}

/// The weights in the order in which sweep_sum.hpp takes them.
std::vector<double> taps_of(const Weights& weights, SumForm form) {
    const int r = weights.radius;
    std::vector<double> taps;
    switch (form) {
        case SumForm::star_symmetric:
        case SumForm::star:
            taps.push_back(weight(weights, 0, 0));
            for (const bool vertical : {false, true}) {
                for (int d = 1; d <= r; ++d) {
                    if (form == SumForm::star) {
                        taps.push_back(vertical ? weight(weights, -d, 0) : weight(weights, 0, -d));
                    }
                    taps.push_back(vertical ? weight(weights, d, 0) : weight(weights, 0, d));
                }
            }
            return taps;
        case SumForm::box_symmetric:
            for (int dy = 0; dy <= r; ++dy) {
                for (int dx = 0; dx <= r; ++dx) {
                    taps.push_back(weight(weights, dy, dx));
                }
            }
            return taps;
        case SumForm::box:
            break;
    }
    return weights.values;
}

/// See Sweeper::sweep: of one strip in one pass.
std::int64_t bytes_moved(const SweepPiece& piece, const Part& own, std::int64_t reach) {
    const Range rows =
                    widened(own.row_begin, own.row_end, reach, piece.edges.top, piece.edges.bottom, piece.shape.rows),
                columns = widened(own.column_begin, own.column_end, reach, piece.edges.left, piece.edges.right,
                                  piece.shape.columns);
    const std::int64_t read = (rows.end - rows.begin) * (columns.end - columns.begin);
    const std::int64_t written = (own.row_end - own.row_begin) * (own.column_end - own.column_begin);
    return (read + written) * static_cast<std::int64_t>(size_of(piece.dtype));
}

}  // namespace

FieldShape field_shape(std::int64_t rows, std::int64_t columns, std::int64_t margin, Dtype dtype) {
    const std::int64_t line = cache_line / static_cast<std::int64_t>(size_of(dtype));
    const std::int64_t before = up(margin, line);
    std::int64_t pitch = up(before + columns + margin, line);
    if (const std::int64_t cells = page / static_cast<std::int64_t>(size_of(dtype)); pitch % cells < 4 * line) {
        pitch = pitch / cells * cells + 4 * line;  // rows that lie whole pages apart would share few places of a cache
    }
    return {.rows = rows,
            .columns = columns,
            .margin = margin,
            .pitch = pitch,
            .origin = margin * pitch + before,
            .elements = (rows + 2 * margin) * pitch};
}

Sweeper::Sweeper(const Weights& weights, Boundary boundary, Dtype dtype, bool plain, const SweepSet* set)
    : radius_(weights.radius),
      boundary_(boundary),
      dtype_(dtype),
      plain_(plain),
      form_(SumForm::box) {
    if (dtype != Dtype::float32 && dtype != Dtype::float64) {
        throw UsageError("a stencil cannot be computed in " + std::string(name_of(dtype)) +
                         "; it must be float32 or float64");
    }
    const std::int64_t side = 2 * std::int64_t{radius_} + 1;
    if (radius_ < 1 || radius_ > max_radius || static_cast<std::int64_t>(weights.values.size()) != side * side) {
        throw UsageError("a stencil of radius " + std::to_string(radius_) + " has " +
                         std::to_string(weights.values.size()) +
                         " weights; the radius must be 1 to 4, and the weights (2·radius+1)²");
    }
    form_ = form_of(weights);
    taps_ = taps_of(weights, form_);
    set_ = set != nullptr ? set : &backend().sweep;
}

std::vector<Part> Sweeper::cut(const Part& part, int steps, int threads) const {
    const std::int64_t rows = part.row_end - part.row_begin, columns = part.column_end - part.column_begin;
    const std::int64_t line = cache_line / static_cast<std::int64_t>(size_of(dtype_));
    const std::int64_t halo = 2 * std::int64_t{steps} * radius_;  // columns that neighbouring strips compute twice
    std::int64_t strips = 1;
    if (!goes_row_by_row(steps)) {
        const std::int64_t span = strip_columns(dtype_);
        const std::int64_t width = most(span - halo, halo);
        strips = (columns + width - 1) / width;
        if (strips > 1 || columns > 4 * halo + span / 2) {
            strips = up(strips, threads);  // all threads end at the same time
        }
    }
    // Bands compute rows twice, so there are only as many as keep all threads busy.
    const std::int64_t most_bands = most(rows / most(2 * halo, 16), 1);
    const std::int64_t bands =
        goes_row_by_row(steps) ? least(threads, rows) : least((threads + strips - 1) / strips, most_bands);
    std::vector<Part> parts;
    for (std::int64_t band = 0; band < bands; ++band) {
        for (std::int64_t strip = 0; strip < strips; ++strip) {
            const auto column = [&](std::int64_t k) {
                return k == strips ? part.column_end
                                   : most(up(part.column_begin + columns * k / strips, line) - line, part.column_begin);
            };
            const Part own{.row_begin = part.row_begin + rows * band / bands,
                           .row_end = part.row_begin + rows * (band + 1) / bands,
                           .column_begin = column(strip),
                           .column_end = column(strip + 1)};
            if (own.column_begin < own.column_end) {
                parts.push_back(own);
            }
        }
    }
    return parts;
}

std::int64_t Sweeper::sweep(const FieldShape& shape, Edges edges, const std::byte* from, std::byte* to,
                            const Part& part, int steps, int threads) {
    const std::int64_t rows = part.row_end - part.row_begin, columns = part.column_end - part.column_begin;
    if (rows <= 0 || columns <= 0) {
        return 0;
    }
    const std::int64_t reach = std::int64_t{steps} * radius_;
    const auto lacks = [&](bool edge, std::int64_t distance) { return !edge && reach - distance > shape.margin; };
    if (lacks(edges.top, part.row_begin) || lacks(edges.bottom, shape.rows - part.row_end) ||
        lacks(edges.left, part.column_begin) || lacks(edges.right, shape.columns - part.column_end)) {
        throw UsageError(std::to_string(steps) + " sweeps of radius " + std::to_string(radius_) + " need " +
                         std::to_string(reach) + " cells around the result; the margin has " +
                         std::to_string(shape.margin));
    }
    if (stood_in_for(static_cast<double>(rows * columns) * steps * flops_per_point(),
                     2 * static_cast<double>(rows * columns) * static_cast<double>(size_of(dtype_)))) {
        return 2 * rows * columns * static_cast<std::int64_t>(size_of(dtype_));
    }
    SweepPiece whole{.shape = shape,
                     .edges = edges,
                     .boundary = boundary_,
                     .dtype = dtype_,
                     .form = form_,
                     .radius = radius_,
                     .taps = taps_.data(),
                     .from = from,
                     .to = to,
                     .part = part,
                     .steps = steps,
                     .streaming = shape.elements * static_cast<std::int64_t>(size_of(dtype_)) >= worth_streaming,
                     .scratch = nullptr};
    if (steps == 0) {
        for (std::int64_t i = part.row_begin; i < part.row_end; ++i) {
            const auto item = static_cast<std::int64_t>(size_of(dtype_));
            const std::int64_t at = (shape.origin + i * shape.pitch + part.column_begin) * item;
            std::copy_n(from + at, columns * item, to + at);
        }
        return bytes_moved(whole, part, 0);
    }
    threads = static_cast<int>(std::clamp<std::int64_t>(rows * columns * steps / worth_a_thread, 1, threads));
    const std::vector<Part> parts = cut(part, steps, threads);
    if (!goes_row_by_row(steps)) {
        std::int64_t bytes = 0;
        for (const Part& own : parts) {
            bytes = most(bytes, wave_size(own, whole, set_->width).bytes);
        }
        scratch_.resize(std::max(scratch_.size(), static_cast<std::size_t>(threads)));
        for (Buffer& buffer : scratch_) {
            if (static_cast<std::int64_t>(buffer.bytes()) < bytes) {
                buffer = Buffer(static_cast<std::size_t>(bytes));
            }
        }
    }
    parallel_tasks(threads, static_cast<std::int64_t>(parts.size()), [&](std::int64_t task, int thread) {
        SweepPiece piece = whole;
        piece.part = parts[static_cast<std::size_t>(task)];
        if (goes_row_by_row(steps)) {
            sweep_plain(*set_, piece);
        } else {
            piece.scratch = scratch_[static_cast<std::size_t>(thread)].data();
            set_->wave(piece);
        }
    });
    std::int64_t moved = 0;
    for (const Part& own : parts) {
        moved += goes_row_by_row(steps) ? steps * bytes_moved(whole, own, radius_) : bytes_moved(whole, own, reach);
    }
    return moved;
}

double Sweeper::flops_per_point() const {
    const auto taps = static_cast<double>(taps_.size());
    const double r = radius_;
    switch (form_) {
        case SumForm::star_symmetric:
            return 2 * taps - 1 + 2 * r;
        case SumForm::box_symmetric:
            return 2 * taps - 1 + r + r * (r + 1);  // rows once for each column, then columns
        default:
            return 2 * taps - 1;
    }
}

int Sweeper::best_steps() const {
    const bool star = form_ == SumForm::star_symmetric || form_ == SumForm::star;
    return plain_ ? 1 : kernel::best_steps(radius_, star, dtype_);
}

}  // namespace tilewise::kernel
