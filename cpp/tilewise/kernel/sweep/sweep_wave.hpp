// Many stencil sweeps in one pass over memory: a wavefront of levels that goes down a strip of columns, a few rows a
// level.
//
//      level  0   1   2   3 = steps
//
//     rows    .   .   .   #  -> written
//      |      .   .   #   #
//      |      .   #   #
//      v      #   #
//  loaded ->  #
//
// A level's block of R rows lies `radius` rows above the block of the level before it, so that all the rows around it
// are there: 2·radius that the last round saved, and R that were just made. Of these the first R − 2·radius are recent:
// in a first-level cache, where the next level takes their place (or puts its own beside them, in two places in turn,
// if it needs them to the end). The last 2·radius are saved, in two places in turn, for the next round too.
//
// Scratch holds O(strip's width · (R + steps · radius)) numbers. Rows beyond an edge are not stored: their pointers
// lead to a row of the value outside, or to the row that stands there. Compiled once for each width of registers, so
// nothing here has a name outside its file.
//
// Design: docs/design/stencil.md
#pragma once

#include "tilewise/kernel/sweep/sweep_lanes.hpp"
#include "tilewise/kernel/sweep/sweep_rows.hpp"

namespace tilewise::kernel {
namespace {

template <class T, std::size_t width, int radius> class Wave {
public:
    Wave(const SweepPiece& piece, const RowSums<T, width>& sums)
        : p_(piece),
          sums_(sums),
          size_(wave_size(piece.part, piece, static_cast<std::int64_t>(width))),
          rows_(reinterpret_cast<V*>(piece.scratch)),
          lanes_(piece, size_.columns, size_.registers,
                 piece.scratch + size_.rows * size_.stride * static_cast<std::int64_t>(width)) {
        for (int tap = 0; tap < taps_of(piece.form, radius); ++tap) {
            weights_[tap] = static_cast<T>(p_.taps[tap]) - V{};  // −0 stays −0
        }
    }

    [[gnu::noinline]] void go() {
        for (std::int64_t x = 0; x < size_.stride; ++x) {  // the row of what lies outside
            rows_[x] = static_cast<T>(p_.boundary.value) - V{};
        }
        const std::int64_t first = level_rows(0).begin;
        for (std::int64_t round = 0; first + round * made - p_.steps * radius < p_.part.row_end; ++round) {
            for (int level = 0; level <= p_.steps; ++level) {
                make(level, round, first + round * made - std::int64_t{level} * radius);
                lanes_.prefetch(first + (round + 1) * made, level_rows(0).end, made, level, p_.steps + 1);
            }
        }
#if defined(__x86_64__)
        if (p_.streaming) {
            _mm_sfence();
        }
#endif
    }

private:
    using Row = Lanes<T, width, radius>;
    using V = typename Row::V;
    static constexpr int made = rows_at_once(radius), saved = 2 * radius, recent = made - saved;

    const SweepPiece& p_;
    RowSums<T, width> sums_;
    WaveSize size_;
    V* rows_;
    Row lanes_;
    V weights_[taps_of(SumForm::box, radius)];

    /// The rows of a level that are needed.
    Range level_rows(int level) const {
        return widened(p_.part.row_begin, p_.part.row_end, std::int64_t{radius} * (p_.steps - level), p_.edges.top,
                       p_.edges.bottom, p_.shape.rows);
    }
    bool beyond(std::int64_t i) const { return (p_.edges.top && i < 0) || (p_.edges.bottom && i >= p_.shape.rows); }
    bool is_fixed(std::int64_t i) const {
        return p_.boundary == Boundary::fixed && (beyond(i - radius) || beyond(i + radius));
    }

    V* row(std::int64_t index) const { return rows_ + index * size_.stride + radius; }
    V* outside() const { return row(0); }
    /// Row q of the block that a level makes in a round.
    V* made_row(int level, std::int64_t round, int q) const {
        if (q < recent) {
            return row(1 + (sums_.in_place ? 0 : (level & 1) * recent) + q);
        }
        return saved_row(level, round, q - recent);
    }
    V* saved_row(int level, std::int64_t round, int q) const {
        return row(1 + 2 * recent + (2 * std::int64_t{level} + (round & 1)) * saved + q);
    }

    /// Rows i … i + made − 1 of a level.
    void make(int level, std::int64_t round, std::int64_t i) {
        const Range needed = level_rows(level);
        const int begin = static_cast<int>(most(needed.begin - i, 0)),
                  end = static_cast<int>(least(needed.end - i, made));
        if (begin >= end) {
            return;
        }
        if (level == 0) {
            for (int q = begin; q < end; ++q) {
                load(i + q, made_row(0, round, q));
            }
            return;
        }
        compute(level, round, i, begin, end);
        for (int q = begin; q < end; ++q) {
            V* now = made_row(level, round, q);
            if (is_fixed(i + q)) {
                load(i + q, now);
            } else if (level < p_.steps || p_.boundary == Boundary::fixed) {
                lanes_.finish(i + q, now);
            }
            if (level == p_.steps) {
                lanes_.store(i + q, now, p_.part.column_begin, p_.part.column_end);
            }
        }
    }

    void load(std::int64_t i, V* to) const {
        lanes_.load(i, to);
        lanes_.finish(i, to);
    }

    void compute(int level, std::int64_t round, std::int64_t i, int begin, int end) {
        const V* in[made + 2 * radius];
        for (int k = 0; k < made + 2 * radius; ++k) {
            std::int64_t from = k;
            if (beyond(i - radius + k)) {
                const std::int64_t source =
                    source_of(p_.boundary, i - radius + k, p_.edges.top, p_.edges.bottom, p_.shape.rows);
                if (source == nowhere) {
                    in[k] = outside();
                    continue;
                }
                from = source - (i - radius);
                if (from < 0 || from >= made + 2 * radius) {
                    from = k;  // only rows that are not needed use it
                }
            }
            in[k] = from < saved ? saved_row(level - 1, round - 1, static_cast<int>(from))
                                 : made_row(level - 1, round, static_cast<int>(from) - saved);
        }
        V* out[made];
        for (int q = 0; q < made; ++q) {
            out[q] = made_row(level, round, q);
        }
        int q = end;  // upwards, so that a row may take the place of the lowest one that it needs
        for (; q - sums_.together >= begin; q -= sums_.together) {
            sums_.several(weights_, in + q - sums_.together, out + q - sums_.together, lanes_.count());
        }
        for (; q > begin; --q) {
            sums_.one(weights_, in + q - 1, out + q - 1, lanes_.count());
        }
    }
};

template <std::size_t width> struct RunWave {
    const SweepPiece& piece;
    template <class T, int radius, SumForm form> void run() const {
        Wave<T, width, radius>(piece, row_sums<T, width, radius, form>()).go();
    }
};

template <std::size_t width> void wave(const SweepPiece& piece) {
    with_sum(piece.dtype, piece.radius, piece.form, RunWave<width>{piece});
}

}  // namespace
}  // namespace tilewise::kernel
