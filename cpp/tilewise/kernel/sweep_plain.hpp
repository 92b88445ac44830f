// The reference of stencil sweeps: level after level over the whole piece, a row at a time. Compiled once for each instruction set.
//
//   level 0  = `from`     each level is `radius` cells smaller than the one before on sides that are no edge of the matrix;
//   level 1 … steps−1     in two scratch fields in turn, as large as level 1
//   level steps  = `to`
#pragma once

#include <vector>

#include "tilewise/kernel/sweep_strip.hpp"
#include "tilewise/kernel/sweep_sum.hpp"

namespace tilewise::kernel {
namespace {

template <class T, int radius, SumForm form> class PlainSweep {
public:
    explicit PlainSweep(const SweepPiece& piece) : p_(piece) {
        for (int tap = 0; tap < taps_of(form, radius); ++tap) {
            w_[tap] = static_cast<T>(p_.taps[tap]);
        }
    }

    void go() {
        Level from{const_cast<T*>(reinterpret_cast<const T*>(p_.from)) + p_.shape.origin, p_.shape.pitch};
        std::vector<T> scratch[2];
        for (int t = 1; t <= p_.steps; ++t) {
            Level to{reinterpret_cast<T*>(p_.to) + p_.shape.origin, p_.shape.pitch};
            if (t < p_.steps) {
                const Range y = rows(1), x = columns(1);
                std::vector<T>& memory = scratch[t % 2];
                memory.resize(static_cast<std::size_t>((y.end - y.begin) * (x.end - x.begin)));
                to.pitch = x.end - x.begin;
                to.origin = memory.data() - y.begin * to.pitch - x.begin;
            }
            sweep(from, to, rows(t), columns(t));
            from = to;
        }
    }

private:
    /// Where the values after some sweeps lie; `origin` is cell (0, 0).
    struct Level {
        T* origin;
        std::int64_t pitch;
    };

    const SweepPiece& p_;
    T w_[taps_of(form, radius)]{};
    std::vector<T>
        lines_[2 * radius + 1]{};  ///< the rows around the current one, with `radius` more cells on each side

    Range rows(int t) const {
        return widened(p_.part.row_begin, p_.part.row_end, std::int64_t{radius} * (p_.steps - t), p_.edges.top,
                       p_.edges.bottom, p_.shape.rows);
    }
    Range columns(int t) const {
        return widened(p_.part.column_begin, p_.part.column_end, std::int64_t{radius} * (p_.steps - t), p_.edges.left,
                       p_.edges.right, p_.shape.columns);
    }
    bool beyond_rows(std::int64_t i) const {
        return (p_.edges.top && i < 0) || (p_.edges.bottom && i >= p_.shape.rows);
    }
    bool beyond_columns(std::int64_t j) const {
        return (p_.edges.left && j < 0) || (p_.edges.right && j >= p_.shape.columns);
    }
    bool keeps(std::int64_t i, std::int64_t j) const {
        return p_.boundary == Boundary::fixed && (beyond_rows(i - radius) || beyond_rows(i + radius) ||
                                                  beyond_columns(j - radius) || beyond_columns(j + radius));
    }

    /// The cell's value, also beyond the edges. (Beside fixed cells what lies beyond is not used.)
    T value(const Level& level, std::int64_t i, std::int64_t j) const {
        if (beyond_rows(i) || beyond_columns(j)) {
            if (p_.boundary != Boundary::reflect) {
                return 0;
            }
            i = mirrored(i, p_.edges.top, p_.edges.bottom, p_.shape.rows);
            j = mirrored(j, p_.edges.left, p_.edges.right, p_.shape.columns);
        }
        return level.origin[i * level.pitch + j];
    }

    void read_line(const Level& from, std::int64_t i, Range x) {
        std::vector<T>& line = lines_[(i % (2 * radius + 1) + 2 * radius + 1) % (2 * radius + 1)];
        line.resize(static_cast<std::size_t>(x.end - x.begin + 2 * radius));
        for (std::int64_t j = x.begin - radius; j < x.end + radius; ++j) {
            line[static_cast<std::size_t>(j - x.begin + radius)] = value(from, i, j);
        }
    }

    void sweep(const Level& from, const Level& to, Range y, Range x) {
        for (std::int64_t i = y.begin - radius; i < y.begin + radius; ++i) {
            read_line(from, i, x);
        }
        for (std::int64_t i = y.begin; i < y.end; ++i) {
            read_line(from, i + radius, x);
            const T* line[2 * radius + 1];
            for (int dy = -radius; dy <= radius; ++dy) {
                line[dy + radius] =
                    lines_[((i + dy) % (2 * radius + 1) + 2 * radius + 1) % (2 * radius + 1)].data() + radius;
            }
            T* out = to.origin + i * to.pitch + x.begin;
            for (std::int64_t j = 0; j < x.end - x.begin; ++j) {
                const auto at = [&](int dy, int dx) { return line[dy + radius][j + dx]; };
                if constexpr (is_symmetric(form)) {
                    out[j] = sum_of_pairs<radius, form>(
                        w_, [&](int a, int dx) { return a == 0 ? at(0, dx) : at(-a, dx) + at(a, dx); });
                } else {
                    out[j] = sum_of_cells<radius, form>(w_, at);
                }
            }
            if (p_.boundary == Boundary::fixed) {
                for (std::int64_t j = x.begin; j < x.end; ++j) {
                    if (keeps(i, j)) {
                        to.origin[i * to.pitch + j] = from.origin[i * from.pitch + j];
                    }
                }
            }
        }
    }
};

struct RunPlain {
    const SweepPiece& piece;
    template <class T, int radius, SumForm form> void run() const { PlainSweep<T, radius, form>(piece).go(); }
};

void plain(const SweepPiece& piece) { with_sum(piece.dtype, piece.radius, piece.form, RunPlain{piece}); }

}  // namespace
}  // namespace tilewise::kernel
