// The matrix that is decomposed, from its file into the ranks' memory: transposed where it is wide, checked,
// and scaled where squares would overflow.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "tilewise/base/buffer.hpp"
#include "tilewise/grid/grid.hpp"
#include "tilewise/io/region.hpp"
#include "tilewise/io/transfer.hpp"
#include "tilewise/kernel/scalar.hpp"
#include "tilewise/mpi/context.hpp"

namespace tilewise::svd {

/// Numbers may be noted in any order, by several ranks.
class FirstNotFinite {
public:
    /// `place`: counted row by row from 0. Nothing happens where `value` is finite.
    void note(std::int64_t place, double value) {
        if (!std::isfinite(value)) {
            first_ = std::min(first_, 4 * place + (std::isnan(value) ? 0 : value > 0 ? 1 : 2));
        }
    }
    void note(const FirstNotFinite& other) { first_ = std::min(first_, other.first_); }
    /// Throws UsageError where there is one: "A.npy: row 3, column 7 (from 0) is nan; a decomposition needs finite
    /// numbers".
    void refuse(const io::Region& a) const;
    /// The same of the first over all ranks, on every rank. @note Collective.
    void refuse(const Context& context, const io::Region& a);

private:
    static constexpr std::int64_t none_ = std::numeric_limits<std::int64_t>::max();
    std::int64_t first_ = none_;  ///< its place, times 4, and what it is
};

/// W (m×n, m ≥ n) is A, or Aᵀ where A is wide. A square A is never transposed, though it may lie as LAPACK wants
/// Aᵀ: columns of different scale, which are more common than such rows, have the faster start.
struct Work {
    io::Region region;        ///< of W
    bool transposed = false;  ///< W is Aᵀ: what is called U of W is V of A
    std::int64_t m = 0, n = 0;

    explicit Work(const io::Region& a);
    /// Whether the file has W column by column.
    bool by_columns() const { return region.stored_transposed(); }
};

/// How W is read: `rows`: each rank reads its rows of it, for a QR of the ranks together; `stored`: rows or
/// columns, as they lie in the file.
enum class ReadLayout { rows, stored };

template <class T> class Source {
public:
    /// Opens the file. `work` must live as long as this. @note Collective.
    Source(Context& context, const Work& work, io::StrategyKind strategy, const io::Hints& hints);

    /// Reads this rank's share, checks it and scales it: by a power of two, where the largest magnitude is far
    /// from 1. @note Collective; throws UsageError with the first position, in A, of a number that is not
    /// finite.
    void read(Context& context, ReadLayout layout, const io::Region& a);
    /// What all numbers in memory were multiplied by.
    double scale() const { return scale_; }
    /// With `rows`: the rank's rows.
    grid::Range rows(const Context& context) const;

    /// With `rows`: copies so many of the rank's rows, from its row `begin` on, to `to`, column by column. Not
    /// collective.
    void copy_rows(std::int64_t begin, std::int64_t count, T* to) const;
    /// Gives the memory back. What columns() handed out stays.
    void release() { share_ = {}; }
    /// The rank's columns of W, nearly as many on each, column by column without gaps. Keeps a copy of what
    /// was read where it is wanted `again`. Memory: where the file has rows, these, what is sent and received,
    /// and the columns. @note Collective; aborts the job where ranks already wait.
    Array<T> columns(Context& context, bool again);

private:
    void check_finite(Context& context, const io::Region& a) const;
    void choose_scale(Context& context);
    grid::Share share_of(int rank, int ranks) const;

    const Work& work_;
    std::optional<io::Input> input_;
    ReadLayout layout_ = ReadLayout::stored;
    Array<T> share_;
    std::int64_t size_ = 0;
    double scale_ = 1;
};

}  // namespace tilewise::svd
