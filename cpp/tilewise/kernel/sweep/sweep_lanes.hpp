// Rows of a strip in lanes: each lane of the registers holds its own run of the columns, so that no register needs to
// be shuffled.
//
//     columns  0 1 2 3 4 5 6 7 8 9 a b c d e f   of the strip, in four lanes of `count` = 4 registers:
//
//     register    −1     0      1      2      3      4
//              [ . ]  [ 0 ]  [ 1 ]  [ 2 ]  [ 3 ]  [ 4 ]
//     lanes    [ 3 ]  [ 4 ]  [ 5 ]  [ 6 ]  [ 7 ]  [ 8 ]     the next column is in the next register, in all lanes alike
//              [ 7 ]  [ 8 ]  [ 9 ]  [ a ]  [ b ]  [ c ]
//              [ b ]  [ c ]  [ d ]  [ e ]  [ f ]  [ . ]
//
// The `radius` registers before and behind repeat what the other lanes hold there. What lies beyond the strip's ends
// (.) is garbage that comes `radius` columns further in with each level, and never reaches what is written; edges of
// the matrix are put right at each level.
#pragma once

#include <cstring>

#include "tilewise/kernel/isa/turn.hpp"
#include "tilewise/kernel/sweep/sweep_strip.hpp"
#include "tilewise/kernel/sweep/sweep_sum.hpp"

namespace tilewise::kernel {
namespace {

template <class T, std::size_t width, int radius> class Lanes {
public:
    typedef T V __attribute__((vector_size(width)));
    static constexpr std::int64_t lanes = width / sizeof(T), item = sizeof(T);

    Lanes(const SweepPiece& piece, Range columns, std::int64_t registers, std::byte* dense)
        : p_(piece),
          columns_(columns),
          count_(registers),
          dense_(dense) {
        mark_edge(piece.edges.left, -1, -1);
        mark_edge(piece.edges.right, piece.shape.columns, 1);
    }

    std::int64_t count() const { return count_; }

    /// Row i of the field, in lanes.
    void load(std::int64_t i, V* row) const {
        const std::int64_t at = p_.shape.origin + i * p_.shape.pitch + columns_.begin;
        const std::byte* from = p_.from + at * item;
        if (at < 0 || at + lanes * count_ > p_.shape.elements) {
            std::memcpy(dense_, from, static_cast<std::size_t>((columns_.end - columns_.begin) * item));
            from = dense_;
        } else if (constexpr std::int64_t ahead = 2;
                   at + ahead * p_.shape.pitch + lanes * count_ <= p_.shape.elements) {
            // Where prefetch put lines into the second-level cache, fetch those of a coming row from there.
            for (std::int64_t j = 0; j < lanes * count_; j += 64 / item) {
                __builtin_prefetch(from + (ahead * p_.shape.pitch + j) * item, 0, 3);
            }
        }
        constexpr std::int64_t step = 16 / item;
        for (std::int64_t x = 0; x < count_; x += step) {
            typename Register<width>::type transposed[step];
            turn<width, sizeof(T)>(from + x * item, count_ * item, transposed);
#pragma GCC unroll 8
            for (std::int64_t k = 0; k < step; ++k) {
                std::memcpy(row + x + k, &transposed[k], width);
            }
        }
    }

    /// Asks for a share of the rows i … i + rows − 1, as far as they lie above `end`: lines go to the second-level
    /// cache in good time.
    void prefetch(std::int64_t i, std::int64_t end, std::int64_t rows, std::int64_t share, std::int64_t shares) const {
        constexpr std::int64_t line = 64 / item;
        const std::int64_t last = columns_.end - columns_.begin - 1, lines = last / line + 2, all = lines * rows;
        std::int64_t k = all * share / shares;
        const std::int64_t stop = least(all * (share + 1) / shares, (end - i) * lines);
        std::int64_t y = i + k / lines, x = k % lines;
        for (; k < stop; ++k) {
            __builtin_prefetch(
                p_.from + (p_.shape.origin + y * p_.shape.pitch + columns_.begin + least(x * line, last)) * item, 0, 2);
            if (++x == lines) {
                x = 0;
                ++y;
            }
        }
    }

    /// The columns [begin, end) of a row to row i of the result.
    void store(std::int64_t i, const V* row, std::int64_t begin, std::int64_t end) const {
        const std::int64_t last = count_ - least(lanes, count_);
        for (std::int64_t x = 0;; x = least(x + lanes, last)) {
            constexpr std::int64_t step = 16 / item;
#pragma GCC unroll 4
            for (std::int64_t lane = 0; lane < lanes; lane += step) {
                typename Register<width>::type transposed[step];
                turn<width, sizeof(T)>(reinterpret_cast<const std::byte*>(row + x) + lane * item,
                                       static_cast<std::int64_t>(width), transposed);
#pragma GCC unroll 4
                for (std::int64_t k = 0; k < step; ++k) {
                    std::memcpy(dense_ + ((lane + k) * count_ + x) * item, &transposed[k], width);
                }
            }
            if (x == last) {
                break;
            }
        }
        std::byte* to = p_.to + (p_.shape.origin + i * p_.shape.pitch + begin) * item;
        put(to, dense_ + (begin - columns_.begin) * item, (end - begin) * item);
    }

    /// Puts right what a computed row i holds beyond the edges of the matrix, and repeats the lanes' ends.
    void finish(std::int64_t i, V* row) const {
        T* cells = reinterpret_cast<T*>(row);
        const T* field = reinterpret_cast<const T*>(p_.from) + p_.shape.origin + i * p_.shape.pitch;
        for (int k = 0; k < inner_; ++k) {
            set(cells, field, edge_cells_[k]);
        }
        constexpr typename UpTo<static_cast<std::size_t>(lanes)>::type positions;
#pragma GCC unroll 4
        for (std::int64_t b = 1; b <= radius; ++b) {
            row[-b] = up(row[count_ - b], positions);
            row[count_ + b - 1] = down(row[b - 1], positions);
        }
        for (int k = 4 * radius; k > 4 * radius - outer_; --k) {
            set(cells, field, edge_cells_[k - 1]);
        }
    }

private:
    /// A cell at (or, where the boundary is fixed, beside) an edge of the matrix: its place in a row, and the place of
    /// the cell or column of the field whose value it has; −1: none, it is the value outside.
    struct EdgeCell {
        std::int64_t to, from;
    };

    const SweepPiece& p_;
    Range columns_;
    std::int64_t count_;
    std::byte* dense_;                   ///< one row, as it lies in the field
    EdgeCell edge_cells_[4 * radius]{};  ///< first those among the strip's columns, at the end those beyond
    int inner_ = 0, outer_ = 0;

    bool holds(std::int64_t j) const { return j >= columns_.begin && j < columns_.begin + lanes * count_; }

    std::int64_t place(std::int64_t j) const {
        const std::int64_t x = j - columns_.begin;
        return x < 0                 ? x * lanes
               : x >= lanes * count_ ? (x - lanes * count_ + count_) * lanes + lanes - 1
                                     : x % count_ * lanes + x / count_;
    }

    /// Notes the cells beyond an edge (or inside it, where they are fixed); `first` is the first beyond, `outwards` the
    /// way from there.
    void mark_edge(bool is_edge, std::int64_t first, std::int64_t outwards) {
        if (!is_edge || p_.boundary == Boundary::periodic) {
            return;
        }
        for (int d = 0; d < radius; ++d) {
            if (p_.boundary == Boundary::fixed) {
                const std::int64_t j = first - outwards * (d + 1);
                if (j >= columns_.begin && j < columns_.end) {
                    edge_cells_[inner_++] = {.to = place(j), .from = j};
                }
                continue;
            }
            const std::int64_t j = first + outwards * d;
            const std::int64_t source = source_of(p_.boundary, j, p_.edges.left, p_.edges.right, p_.shape.columns);
            if (j < columns_.begin - radius || j >= columns_.begin + lanes * count_ + radius ||
                (source != nowhere && !holds(source))) {
                continue;  // too far away to matter
            }
            const EdgeCell cell{.to = place(j), .from = source == nowhere ? -1 : place(source)};
            if (holds(j)) {
                edge_cells_[inner_++] = cell;
            } else {
                edge_cells_[4 * radius - ++outer_] = cell;
            }
        }
    }

    [[gnu::always_inline]] void set(T* cells, const T* field, EdgeCell cell) const {
        cells[cell.to] = cell.from < 0                    ? static_cast<T>(p_.boundary.value)
                         : p_.boundary == Boundary::fixed ? field[cell.from]
                                                          : cells[cell.from];
    }

    /// Each lane's number to the next lane; the first gets 0.
    template <std::size_t... lane> [[gnu::always_inline]] static V up(const V& v, Positions<lane...>) {
        return shuffled(V{}, v, Positions<(lane == 0 ? 0 : static_cast<std::size_t>(lanes) + lane - 1)...>{});
    }
    template <std::size_t... lane> [[gnu::always_inline]] static V down(const V& v, Positions<lane...>) {
        return shuffled(v, V{}, Positions<(lane + 1)...>{});
    }

    /// Whole registers past the caches where the piece says so.
    void put(std::byte* to, const std::byte* from, std::int64_t bytes) const {
        constexpr auto line = static_cast<std::int64_t>(width);
        std::int64_t at = 0;
        if (p_.streaming && bytes >= 2 * line) {
            at = (line - static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to) % width)) % line;
            std::memcpy(to, from, static_cast<std::size_t>(at));
            for (; at + line <= bytes; at += line) {
                V cells;
                std::memcpy(&cells, from + at, width);
                stream(to + at, cells);
            }
        }
        std::memcpy(to + at, from + at, static_cast<std::size_t>(bytes - at));
    }
};

}  // namespace
}  // namespace tilewise::kernel
