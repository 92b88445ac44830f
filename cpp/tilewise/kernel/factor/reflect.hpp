// A block of reflectors applied to rows of C: products without packing, by the register tile.
//
// A strip of C is as many vectors wide as a tile: its W (count×strip) and T·W stay in the first-level cache, and of C a
// window of some rows passes through it twice. A V that the second-level cache cannot hold is taken in blocks of rows:
// all strips pass by a block before the next. Rows of C are vectors, and numbers of V are broadcast.
#pragma once

#include "tilewise/kernel/factor/block_reflector.hpp"
#include "tilewise/kernel/product/tile.hpp"

namespace tilewise::kernel {
namespace {

template <std::size_t width, std::size_t rows, std::size_t vectors> class Reflect {
public:
    Reflect(const ReflectorShape& shape, const double* v, const double* t) : s_(shape), v_(v), t_(t) {}

    /// C ← (I − V·T·Vᵀ)·C. `memory`: W and T·W of all strips.
    void operator()(double* c, std::int64_t c_step, std::int64_t columns, double* memory) const {
        const std::int64_t size = s_.stride * strip, together = s_.rows > block_rows ? columns : strip;
        for (std::int64_t left = 0; left < columns; left += together) {
            const std::int64_t strips = together / strip;
            double* tw = memory + strips * size;
            for (std::int64_t i = 0; i < 2 * strips * size; ++i) {
                memory[i] = 0;
            }
            for (std::int64_t top = 0; top < s_.rows; top += block_rows) {
                for (std::int64_t x = 0; x < strips; ++x) {
                    gather(top, lesser(top + block_rows, s_.rows), c + left + x * strip, c_step, memory + x * size);
                }
            }
            for (std::int64_t x = 0; x < strips; ++x) {
                for (std::int64_t j = 0; j < s_.stride; j += height) {
                    update<Into::added>(t_ + j * s_.stride, s_.stride, 1, memory + x * size, strip, j, s_.count,
                                        tw + x * size + j * strip, strip);
                }
            }
            for (std::int64_t top = 0; top < s_.rows; top += block_rows) {
                for (std::int64_t x = 0; x < strips; ++x) {
                    spread(top, lesser(top + block_rows, s_.rows), tw + x * size, c + left + x * strip, c_step);
                }
            }
        }
    }

private:
    static constexpr std::int64_t height = rows, strip = vectors * width / sizeof(double);
    static constexpr std::int64_t window = 32;       // rows of C that stay in the first-level cache
    static constexpr std::int64_t block_rows = 256;  // rows of V that stay in the second-level cache

    static constexpr std::int64_t lesser(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
    static constexpr std::int64_t greater(std::int64_t a, std::int64_t b) { return a > b ? a : b; }

    /// A tile: c ± Σ a(r, p)·b(p) over p in [begin, end).
    template <Into into>
    [[gnu::always_inline]] static void update(const double* a, std::int64_t row_step, std::int64_t step,
                                              const double* b, std::int64_t b_step, std::int64_t begin,
                                              std::int64_t end, double* c, std::int64_t c_step) {
        Tile<double, width, rows, vectors> tile;
        a += begin * step;
        b += begin * b_step;
        tile.add(end - begin, a, row_step, step, b, b_step);
        tile.template store<into>(c, c_step);
    }

    /// W ← W + Vᵀ·C for rows [top, bottom).
    void gather(std::int64_t top, std::int64_t bottom, const double* c, std::int64_t c_step, double* w) const {
        for (std::int64_t row = top; row < bottom; row += window) {
            const std::int64_t last = lesser(row + window, bottom);
            for (std::int64_t j = 0; j < s_.stride; j += height) {
                const std::int64_t begin = greater(row, j), end = lesser(last, j + height - 1 + s_.reach);
                if (begin < end) {
                    update<Into::added>(v_ + j, 1, s_.stride, c, c_step, begin, end, w + j * strip, strip);
                }
            }
        }
    }

    /// C ← C − V·(T·W) for rows [top, bottom).
    void spread(std::int64_t top, std::int64_t bottom, const double* tw, double* c, std::int64_t c_step) const {
        for (std::int64_t i = top; i < bottom; i += height) {
            const std::int64_t begin = greater(0, i - s_.reach + 1), end = lesser(s_.count, i + height);
            if (begin < end) {
                update<Into::subtracted>(v_ + i * s_.stride, s_.stride, 1, tw, strip, begin, end, c + i * c_step,
                                         c_step);
            }
        }
    }

    ReflectorShape s_;
    const double *v_, *t_;
};

template <std::size_t width, std::size_t rows, std::size_t vectors>
void reflect(const ReflectorShape& shape, const double* v, const double* t, double* c, std::int64_t c_step,
             std::int64_t columns, double* memory) {
    Reflect<width, rows, vectors>(shape, v, t)(c, c_step, columns, memory);
}

}  // namespace
}  // namespace tilewise::kernel
