// Strassen's product by the kernel of a plain one: sums of blocks are made while they are packed, and each product is
// added to all blocks of C that it belongs to, so that nothing of the size of a block is kept.
//
//      one level, blocks        A                 B                 goes to           longest rows and columns
//     [ 11 12 ]            1   (A11 + A22)       (B11 + B22)       C11  C22               2 · 2
//     [ 21 22 ]            2   (A21 + A22)        B11              C21 −C22              √2 · 1
//                          3    A11              (B12 − B22)       C12  C22               1 · √2
//                          4    A22              (B21 − B11)       C11  C21               1 · √2
//                          5   (A11 + A12)        B22             −C11  C12              √2 · 1
//                          6   (A21 − A11)       (B11 + B12)       C22                    2 · 2
//                          7   (A12 − A22)       (B21 + B22)       C11                    2 · 2
//
// Several levels are the same with every block a sum of blocks: 7ᵗ products of up to 2ᵗ terms, one after the other. For
// each, threads pack a slice of B together, then take blocks of rows in turn.
//
// The error. With A and B's rows and columns at most as long as 1, the sums have those lengths, and what a product's
// roundings can be is proportional to their product: C11 and C22 add up 4 + √2 + √2 + 4 = 8 + 2√2 of it a level. An
// element goes through the additions of two sums, through the depth of a slice, and through those of C, 4ᵗ a slice.
//
// V. Strassen, "Gaussian elimination is not optimal", 1969; N. J. Higham, "Exploiting fast matrix multiplication within
// the level 3 BLAS", 1990, for the error; J. Huang, T. M. Smith, G. M. Henry and R. van de Geijn, "Strassen's algorithm
// reloaded", 2016, for the packing.
//
// Design: docs/design/products.md
#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <cmath>
#include <vector>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/isa/backend.hpp"
#include "tilewise/kernel/product/gemm.hpp"

namespace tilewise::kernel {
namespace {

/// A block of packed A stays in the second-level cache, one of packed B in the third.
constexpr std::int64_t block_depth = 512, block_rows = 96, block_columns = 2112;

/// Block (row, column) of a matrix, added or subtracted; of C, whether it is the first to be written there.
struct Entry {
    int row, column, sign;
    bool first = false;
};
using Entries = std::vector<Entry>;

struct Step {
    Entries a, b, c;
};

/// The table above; the first block of a sum of A or B is positive.
const std::vector<Step>& one_level() {
    static const std::vector<Step> steps{
        {{{0, 0, 1}, {1, 1, 1}}, {{0, 0, 1}, {1, 1, 1}}, {{0, 0, 1}, {1, 1, 1}}},
        {{{1, 0, 1}, {1, 1, 1}}, {{0, 0, 1}}, {{1, 0, 1}, {1, 1, -1}}},
        {{{0, 0, 1}}, {{0, 1, 1}, {1, 1, -1}}, {{0, 1, 1}, {1, 1, 1}}},
        {{{1, 1, 1}}, {{1, 0, 1}, {0, 0, -1}}, {{0, 0, 1}, {1, 0, 1}}},
        {{{0, 0, 1}, {0, 1, 1}}, {{1, 1, 1}}, {{0, 0, -1}, {0, 1, 1}}},
        {{{1, 0, 1}, {0, 0, -1}}, {{0, 0, 1}, {0, 1, 1}}, {{1, 1, 1}}},
        {{{0, 1, 1}, {1, 1, -1}}, {{1, 0, 1}, {1, 1, 1}}, {{0, 0, 1}}},
    };
    return steps;
}

/// Every block of `outer` replaced by `inner`.
Entries nested(const Entries& outer, const Entries& inner) {
    Entries all;
    for (const Entry& o : outer) {
        for (const Entry& i : inner) {
            all.push_back({2 * o.row + i.row, 2 * o.column + i.column, o.sign * i.sign});
        }
    }
    return all;
}

std::vector<Step> all_steps(int levels) {
    std::vector<Step> steps{{{{0, 0, 1}}, {{0, 0, 1}}, {{0, 0, 1}}}};
    for (int level = 0; level < levels; ++level) {
        std::vector<Step> finer;
        for (const Step& outer : steps) {
            for (const Step& inner : one_level()) {
                finer.push_back({nested(outer.a, inner.a), nested(outer.b, inner.b), nested(outer.c, inner.c)});
            }
        }
        steps = std::move(finer);
    }
    std::vector<bool> written(std::size_t{1} << (2 * levels));
    for (Step& step : steps) {
        for (Entry& entry : step.c) {
            const auto block = static_cast<std::size_t>((entry.row << levels) + entry.column);
            entry.first = !written[block];
            written[block] = true;
        }
    }
    return steps;
}

/// `count` of `whole` in parts that are multiples of `unit`, as equal as that allows, none above `most`.
struct Cut {
    std::int64_t whole, unit, parts;

    Cut(std::int64_t whole_, std::int64_t most, std::int64_t unit_)
        : whole(whole_),
          unit(unit_),
          parts((whole_ + most - 1) / most) {}
    std::int64_t border(std::int64_t index) const {
        const std::int64_t units = (whole + unit - 1) / unit;
        return std::min(whole, units * index / parts * unit);
    }
    grid::Range operator[](std::int64_t index) const { return {border(index), border(index + 1)}; }
};

/// All products of one call, whose sides are multiples of 2^levels.
template <class T> class Strassen {
public:
    Strassen(const GemmTiles<T>& tiles, const Product& whole, int threads, int levels, const Between& between)
        : tiles_(tiles),
          whole_(whole),
          threads_(threads),
          between_(between),
          steps_(all_steps(levels)),
          m_(whole.m >> levels),
          n_(whole.n >> levels),
          k_(whole.k >> levels),
          rows_(m_, rows_for(m_, threads, tiles.rows), tiles.rows),
          columns_(n_, block_columns / tiles.columns * tiles.columns, tiles.columns),
          depths_(k_, block_depth, 1) {
        std::int64_t widest = 0;
        for (std::int64_t part = 0; part < columns_.parts; ++part) {
            widest = std::max(widest, columns_[part].size());
        }
        stride_ = (widest + tiles.columns - 1) / tiles.columns * tiles.columns;
        const std::int64_t depth = std::min(k_, block_depth);
        b_ = buffer_for(stride_ * depth);
        for (int thread = 0; thread < threads; ++thread) {
            a_.push_back(buffer_for(block_rows * depth));
            products_.push_back(buffer_for(block_rows * stride_));
        }
    }

    void operator()() {
        std::barrier together(threads_, [this]() noexcept { next_ = 0; });
        parallel(threads_, [&](int thread) {
            try {
                run(thread, together);
            } catch (...) {
                together.arrive_and_drop();  // nobody waits for it
                throw;
            }
        });
    }

private:
    static Buffer buffer_for(std::int64_t numbers) { return Buffer(static_cast<std::size_t>(numbers) * sizeof(T)); }
    static T* numbers(const Buffer& buffer) { return reinterpret_cast<T*>(buffer.data()); }
    /// Fewer than fill the cache where threads would have nothing to do.
    static std::int64_t rows_for(std::int64_t m, int threads, std::int64_t unit) {
        return std::clamp((m / threads + unit - 1) / unit * unit, unit, block_rows);
    }

    template <class Together> void run(int thread, Together& together) {
        const auto slices = static_cast<std::int64_t>(steps_.size()) * columns_.parts * depths_.parts;
        std::int64_t slice = 0;
        for (const Step& step : steps_) {
            for (std::int64_t part = 0; part < columns_.parts; ++part) {
                for (std::int64_t layer = 0; layer < depths_.parts; ++layer, ++slice) {
                    const grid::Range columns = columns_[part], depth = depths_[layer];
                    pack_b(step, columns, depth, thread);
                    together.arrive_and_wait();
                    for (std::int64_t block = next_++; block < rows_.parts; block = next_++) {
                        multiply(step, rows_[block], columns, depth, thread);
                        if (thread == 0 && between_) {
                            const double of_slice = static_cast<double>(block) / static_cast<double>(rows_.parts);
                            between_((static_cast<double>(slice) + of_slice) / static_cast<double>(slices));
                        }
                    }
                    together.arrive_and_wait();
                }
            }
        }
    }

    /// This thread's share of the panels.
    void pack_b(const Step& step, grid::Range columns, grid::Range depth, int thread) {
        const std::int64_t panels = (columns.size() + tiles_.columns - 1) / tiles_.columns;
        const std::int64_t begin = panels * thread / threads_ * tiles_.columns;
        const std::int64_t end = std::min(columns.size(), panels * (thread + 1) / threads_ * tiles_.columns);
        if (begin < end) {
            const Operand& b = whole_.b;
            const std::int64_t along = b.transposed ? b.stride : 1, down = b.transposed ? 1 : b.stride;
            Terms<T> terms{.count = step.b.size(), .along = along, .down = down};
            for (std::size_t t = 0; t < terms.count; ++t) {
                const Entry& entry = step.b[t];
                terms.at[t] = reinterpret_cast<const T*>(b.data) + (entry.row * k_ + depth.begin) * down +
                              (entry.column * n_ + columns.begin + begin) * along;
                terms.sign[t] = static_cast<T>(entry.sign);
            }
            tiles_.pack_b(terms, end - begin, depth.size(), numbers(b_) + begin * depth.size());
        }
    }

    void multiply(const Step& step, grid::Range rows, grid::Range columns, grid::Range depth, int thread) {
        const Operand& a = whole_.a;
        const std::int64_t along = a.transposed ? 1 : a.stride, down = a.transposed ? a.stride : 1;
        Terms<T> terms{.count = step.a.size(), .along = along, .down = down};
        for (std::size_t t = 0; t < terms.count; ++t) {
            const Entry& entry = step.a[t];
            terms.at[t] = reinterpret_cast<const T*>(a.data) + (entry.row * m_ + rows.begin) * along +
                          (entry.column * k_ + depth.begin) * down;
            terms.sign[t] = static_cast<T>(entry.sign);
        }
        T* panels = numbers(a_[static_cast<std::size_t>(thread)]);
        T* product = numbers(products_[static_cast<std::size_t>(thread)]);
        tiles_.pack_a(terms, rows.size(), depth.size(), panels);
        tiles_.multiply(depth.size(), panels, numbers(b_), {product, stride_, rows.size(), columns.size(), false});
        Targets<T> targets{.count = step.c.size(), .stride = whole_.c_stride};
        for (std::size_t t = 0; t < targets.count; ++t) {
            const Entry& entry = step.c[t];
            targets.at[t] = reinterpret_cast<T*>(whole_.c) + (entry.row * m_ + rows.begin) * whole_.c_stride +
                            entry.column * n_ + columns.begin;
            targets.sign[t] = static_cast<T>(entry.sign);
            targets.add[t] = whole_.accumulate || !entry.first || depth.begin > 0;
        }
        tiles_.add(rows.size(), columns.size(), product, stride_, targets);
    }

    const GemmTiles<T>& tiles_;
    const Product& whole_;
    int threads_;
    const Between& between_;
    std::vector<Step> steps_;
    std::int64_t m_, n_, k_;  // of a block
    Cut rows_, columns_, depths_;
    std::int64_t stride_ = 0;             // of a product's rows
    Buffer b_;                            // panels of all threads …
    std::vector<Buffer> a_, products_;    // … and of each
    std::atomic<std::int64_t> next_ = 0;  // block of rows
};

void whole_blocks(const Product& p, int threads, int levels, const Between& between) {
    if (p.dtype == Dtype::float32) {
        Strassen<float>(backend().gemm.float32, p, threads, levels, between)();
    } else {
        Strassen<double>(backend().gemm.float64, p, threads, levels, between)();
    }
}

}  // namespace

int strassen_levels(Dtype dtype, std::int64_t m, std::int64_t n, std::int64_t k) {
    if (dtype != Dtype::float32 && dtype != Dtype::float64) {
        return 0;
    }
    // Sides of C's blocks from which another level pays, and their depth: more sums then cost less than is saved.
    constexpr std::array<std::int64_t, 3> least{1536, 2048, 4096};
    constexpr std::int64_t least_depth = 512;
    int levels = 0;
    while (std::size_t{1} << levels < most_terms &&
           std::min(m, n) >> (levels + 1) >= least[static_cast<std::size_t>(levels)] &&
           k >> (levels + 1) >= least_depth) {
        ++levels;
    }
    return levels;
}

void strassen(const Product& product, int threads, int levels, const Between& between) {
    const auto even = [&](std::int64_t side) { return side >> levels << levels; };
    const std::int64_t m = even(product.m), n = even(product.n), k = even(product.k);
    if (m == 0 || n == 0 || k == 0 || levels == 0) {
        gemm(product, threads, Kernel::fast, between);
        return;
    }
    const auto part = [&](grid::Range rows, grid::Range columns, grid::Range depth) {
        const auto size = static_cast<std::int64_t>(size_of(product.dtype));
        const auto at = [&](const Operand& x, std::int64_t row, std::int64_t column) {
            const std::int64_t numbers = x.transposed ? column * x.stride + row : row * x.stride + column;
            return Operand{x.data + numbers * size, x.stride, x.transposed};
        };
        Product cut = product;
        cut.m = rows.size();
        cut.n = columns.size();
        cut.k = depth.size();
        cut.a = at(product.a, rows.begin, depth.begin);
        cut.b = at(product.b, depth.begin, columns.begin);
        cut.c = product.c + (rows.begin * product.c_stride + columns.begin) * size;
        cut.accumulate = product.accumulate || depth.begin > 0;
        return cut;
    };
    whole_blocks(part({0, m}, {0, n}, {0, k}), threads, levels, between);
    // What is left over, in strips that do not depend on threads: BLAS sums otherwise in another shape.
    constexpr std::int64_t strip = 512;
    const auto leftover = [&](grid::Range rows, grid::Range columns, grid::Range depth) {
        const bool down = rows.size() > columns.size();
        const std::int64_t length = down ? rows.size() : columns.size();
        if (rows.size() == 0 || columns.size() == 0 || depth.size() == 0) {
            return;
        }
        parallel_tasks(threads, (length + strip - 1) / strip, [&](std::int64_t task, int) {
            const grid::Range here{task * strip, std::min(length, (task + 1) * strip)};
            gemm(down ? part({rows.begin + here.begin, rows.begin + here.end}, columns, depth)
                      : part(rows, {columns.begin + here.begin, columns.begin + here.end}, depth),
                 1);
        });
    };
    leftover({0, m}, {0, n}, {k, product.k});
    leftover({0, m}, {n, product.n}, {0, product.k});
    leftover({m, product.m}, {0, product.n}, {0, product.k});
}

double strassen_work(int levels) { return std::pow(7.0 / 8, levels); }

double strassen_growth(int levels, std::int64_t k, std::int64_t steps) {
    constexpr auto depth = static_cast<double>(block_depth);
    const double terms = std::ldexp(1, levels), inner = static_cast<double>(k) / terms;
    const double slices = std::ceil(inner / depth) + static_cast<double>(steps);
    const double roundings = 2 * (terms - 1) + std::min(inner, depth) + terms * terms * slices;
    return 1.01 * roundings * std::pow(8 + 2 * std::sqrt(2.0), levels);  // 1.01: what roundings of roundings add
}

}  // namespace tilewise::kernel
