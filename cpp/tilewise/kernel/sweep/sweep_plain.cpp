// The reference of stencil sweeps: level after level over the whole piece, a row at a time.
//
//   level 0  = `from`     each level is `radius` cells smaller than the one before,
//   level 1 … steps−1     but for sides that are an edge of the matrix:
//   level steps  = `to`   in two scratch fields in turn, as large as level 1
//
// It is also the fastest way to sweep once.
#include <initializer_list>
#include <utility>
#include <vector>

#include "tilewise/kernel/sweep/sweep_strip.hpp"

namespace tilewise::kernel {
namespace {

/// The sum of sweep_sum.hpp, term by term.
std::vector<SweepTerm> terms_of(const SweepPiece& piece) {
    const int r = piece.radius;
    std::vector<SweepTerm> terms;
    const auto add = [&](std::initializer_list<std::pair<int, int>> cells) {
        SweepTerm& term = terms.emplace_back(SweepTerm{.weight = piece.taps[terms.size()]});
        for (const auto& [dy, dx] : cells) {
            term.cell[term.cells++] = {.line = dy + r, .shift = dx};
        }
    };
    if (piece.form == SumForm::box) {
        for (int dy = -r; dy <= r; ++dy) {
            for (int dx = -r; dx <= r; ++dx) {
                add({{dy, dx}});
            }
        }
        return terms;
    }
    add({{0, 0}});
    const auto add_mirrored = [&](int dy, int dx) {
        if (piece.form == SumForm::star) {
            add({{-dy, -dx}});
            add({{dy, dx}});
        } else {
            add({{-dy, -dx}, {dy, dx}});
        }
    };
    for (int b = 1; b <= r; ++b) {
        add_mirrored(0, b);
    }
    for (int a = 1; a <= r; ++a) {
        add_mirrored(a, 0);
        for (int b = 1; piece.form == SumForm::box_symmetric && b <= r; ++b) {
            add({{-a, -b}, {a, -b}, {-a, b}, {a, b}});
        }
    }
    return terms;
}

template <class T> class PlainSweep {
public:
    PlainSweep(const SweepPiece& piece, PlainRow sum_row)
        : p_(piece),
          sum_row_(sum_row),
          terms_(terms_of(piece)),
          outside_(static_cast<std::size_t>(columns(0).end - columns(0).begin), static_cast<T>(piece.boundary.value)) {}

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
    PlainRow sum_row_;
    std::vector<SweepTerm> terms_;
    std::vector<T> outside_;  ///< a row of the value beyond the edges

    Range rows(int t) const {
        return widened(p_.part.row_begin, p_.part.row_end, std::int64_t{p_.radius} * (p_.steps - t), p_.edges.top,
                       p_.edges.bottom, p_.shape.rows);
    }
    Range columns(int t) const {
        return widened(p_.part.column_begin, p_.part.column_end, std::int64_t{p_.radius} * (p_.steps - t),
                       p_.edges.left, p_.edges.right, p_.shape.columns);
    }
    bool beyond_rows(std::int64_t i) const {
        return (p_.edges.top && i < 0) || (p_.edges.bottom && i >= p_.shape.rows);
    }
    bool beyond_columns(std::int64_t j) const {
        return (p_.edges.left && j < 0) || (p_.edges.right && j >= p_.shape.columns);
    }
    bool keeps(std::int64_t i, std::int64_t j) const {
        return beyond_rows(i - p_.radius) || beyond_rows(i + p_.radius) || beyond_columns(j - p_.radius) ||
               beyond_columns(j + p_.radius);
    }

    /// The cell's value, also beyond the edges. (Beside fixed cells what lies beyond is not used.)
    T value(const Level& level, std::int64_t i, std::int64_t j) const {
        if (beyond_rows(i) || beyond_columns(j)) {
            i = source_of(p_.boundary, i, p_.edges.top, p_.edges.bottom, p_.shape.rows);
            j = source_of(p_.boundary, j, p_.edges.left, p_.edges.right, p_.shape.columns);
            if (i == nowhere || j == nowhere) {
                return static_cast<T>(p_.boundary.value);
            }
        }
        return level.origin[i * level.pitch + j];
    }

    /// Row i, or what stands there beyond an edge: its cells inside the matrix.
    const T* line(const Level& from, std::int64_t i) const {
        if (beyond_rows(i)) {
            i = source_of(p_.boundary, i, p_.edges.top, p_.edges.bottom, p_.shape.rows);
            if (i == nowhere) {
                return outside_.data() - columns(0).begin;
            }
        }
        return from.origin + i * from.pitch;
    }

    void sweep(const Level& from, const Level& to, Range y, Range x) const {
        const int r = p_.radius;
        const std::int64_t left = p_.edges.left ? least(most(x.begin, r), x.end) : x.begin;
        const std::int64_t right = p_.edges.right ? most(least(x.end, p_.shape.columns - r), left) : x.end;
        for (std::int64_t i = y.begin; i < y.end; ++i) {
            T* result = to.origin + i * to.pitch;
            const void* around[2 * max_radius + 1];
            for (int dy = -r; dy <= r; ++dy) {
                around[dy + r] = line(from, i + dy) + left;
            }
            sum_row_(terms_.data(), static_cast<int>(terms_.size()), around, result + left, right - left);
            sum_beside_edge(from, i, {x.begin, left}, result);
            sum_beside_edge(from, i, {right, x.end}, result);
            for (std::int64_t j = x.begin; p_.boundary == Boundary::fixed && j < x.end; ++j) {
                if (keeps(i, j)) {
                    result[j] = from.origin[i * from.pitch + j];
                }
            }
        }
    }

    /// At most `radius` cells of row i, some of whose neighbours lie beyond an edge: those are brought together first.
    void sum_beside_edge(const Level& from, std::int64_t i, Range x, T* result) const {
        if (x.begin == x.end) {
            return;
        }
        T cells[2 * max_radius + 1][3 * max_radius];
        const void* around[2 * max_radius + 1];
        for (int dy = -p_.radius; dy <= p_.radius; ++dy) {
            T* cell = cells[dy + p_.radius];
            around[dy + p_.radius] = cell + p_.radius;
            for (std::int64_t j = x.begin - p_.radius; j < x.end + p_.radius; ++j) {
                *cell++ = value(from, i + dy, j);
            }
        }
        sum_row_(terms_.data(), static_cast<int>(terms_.size()), around, result + x.begin, x.end - x.begin);
    }
};

}  // namespace

void sweep_plain(const SweepSet& set, const SweepPiece& piece) {
    if (piece.dtype == Dtype::float32) {
        PlainSweep<float>(piece, set.plain32).go();
    } else {
        PlainSweep<double>(piece, set.plain64).go();
    }
}

}  // namespace tilewise::kernel
