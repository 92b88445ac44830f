// The rows that one thread meets, as a chain of QRs: forwards to the triangle of all of them, backwards to their rows
// of Q.
//
//     head    Q₀·R₀            B₀ ─▶ Q₀·B₀                each step of the way back takes n×K numbers from the one
//     panel 1 [R₀; P₁] = Q₁R₁  Q₁·[B₁; 0] = [B₀; U₁]      that follows, and leaves as many to the one before
//     panel 2 [R₁; P₂] = Q₂R₂  Q₂·[B₂; 0] = [B₁; U₂]
//
// What is kept of each panel is the triangle before it. Its reflections are made again from that and its rows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tilewise/base/array.hpp"
#include "tilewise/io/file.hpp"
#include "tilewise/kernel/scalar.hpp"

namespace tilewise::svd {

/// Memory, in numbers: 3·n² and, after turn(), 2·n·K. Not collective; the BLAS's threads are the caller's affair.
template <class T> class RowChain {
public:
    explicit RowChain(std::int64_t columns);

    /// Numbers of a triangle as it is kept.
    static std::int64_t packed(std::int64_t columns) { return columns * (columns + 1) / 2; }

    /// The first rows (n at most), column by column, `stride` apart. Forgets what was before.
    void begin(const T* rows, std::int64_t count, std::int64_t stride);
    /// A panel of further rows, which is destroyed; only after n rows. `before` gets the packed triangle of those
    /// before it.
    void add(T* panel, std::int64_t rows, std::int64_t stride, T* before);
    /// The triangle of all rows so far, column by column, n apart, with zeros below; `height` rows of it are not 0.
    const T* r() const { return r_.data(); }
    std::int64_t height() const { return height_; }

    /// From here on backwards: `b` (height×K), row by row, is what all rows are to be multiplied with.
    void turn(const T* b, std::int64_t count);
    /// The last panel that was not yet met on the way back: its rows of the product, in place of U, column by column
    /// `stride` apart, or row by row without gaps.
    void back(T* panel, std::int64_t rows, std::int64_t panel_stride, const T* before, T* u, std::int64_t u_stride,
              bool by_rows);
    /// At last the rows that begin() was given.
    void back_to_head(T* u, std::int64_t u_stride, bool by_rows);

private:
    std::int64_t n_, height_ = 0, count_ = 0;
    Array<T> head_, r_, t_, b_, c_;
    std::vector<T> tau_;
};

/// The triangles before each panel of a rank's chains while they are wanted, in a file without a name beside `output`:
/// where there is room for that, there is some for what it is made of. Any thread may keep and recall. Throws IoError.
template <class T> class TriangleFile {
public:
    /// `output`: a path, or empty for something in memory.
    TriangleFile(const std::string& output, std::int64_t columns, int lanes);

    void keep(std::int64_t step, int lane, const Array<T>& packed) const;
    void recall(std::int64_t step, int lane, const Array<T>& packed) const;

private:
    std::int64_t place(std::int64_t step, int lane) const { return (step * lanes_ + lane) * bytes_; }

    std::int64_t bytes_, lanes_;
    std::optional<io::PosixFile> file_;
};

extern template class TriangleFile<double>;
extern template class TriangleFile<kernel::Complex>;
extern template class RowChain<double>;
extern template class RowChain<kernel::Complex>;

}  // namespace tilewise::svd
