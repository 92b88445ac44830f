// Freivalds' check, distributed: reductions of vectors, and a pass or two of each rank over its own blocks.
//
//     x (random, each column of B scaled to length 1)  ─▶  z = B·x  ─▶  r = A·z − C·x
//                           norms: sum over ranks       sum over ranks  sum over ranks
//
// Each rank adds its blocks' share to vectors of full length, which are then summed over the ranks.
//
// The signs of x do not depend on the data. With e_ij the rounding errors of row i, |e_ij| ≤ growth·u·Σ_k |a_ik||b_kj|,
// the residual is Σ_j e_ij·x_j: of the size of its 2-norm, which by the triangle inequality over k is at most
// growth·u·Σ_k |a_ik|·‖(B·X)_k‖. That costs no square of A, so that nothing overflows, and does not change where a
// column k of A is scaled against row k of B.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <optional>

#include "tilewise/base/random.hpp"
#include "tilewise/kernel/product/apply.hpp"
#include "tilewise/mpi/datatype.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/multiply/proof.hpp"

namespace tilewise::multiply {
namespace {

using kernel::Check;
using kernel::Image;
using kernel::Probe;

/// Columns of B times x are this long: sums over all of k and n then stay within the range of double.
constexpr double length = 0x1p-24;
/// The largest weight, for columns that are zero or next to it.
constexpr double largest_weight = 0x1p936;
/// Sums of squares outside of these have lost terms.
constexpr double least_squares = 1e-280, most_squares = 1e300;

/// Of magnitude 1/2 … 1 and random sign: no element of C is hidden behind a small factor, and two wrong ones do not
/// cancel in both vectors. Neighbours have opposite signs, other ones in each vector: where all columns are alike,
/// rounding errors are, too, and should not add up.
template <class V> V random_factor(std::uint64_t seed, std::int64_t column, std::int64_t columns, int vector) {
    const std::uint64_t bits = random_bits(seed, static_cast<std::uint64_t>(2 * column + vector));
    if constexpr (std::is_same_v<V, std::uint64_t>) {
        return bits | 1U;  // odd: no wrong element is multiplied away modulo 2⁶⁴
    } else {
        const std::int64_t shifted = column + vector;
        const auto place = static_cast<std::uint64_t>(columns % 2 == 0 ? shifted % columns : shifted);
        const std::uint64_t pair = random_bits(mix(seed), place / 2 * 2 + static_cast<std::uint64_t>(vector));
        const double magnitude = 0.5 + 0.5 * uniform(bits);
        return V(((pair ^ place) & 1U) != 0 ? magnitude : -magnitude);
    }
}

template <class V> void sum_over_ranks(const mpi::Communicator& comm, std::vector<V>& values) {
    mpi::sum_over_ranks(comm, values.data(), std::ssize(values));
}

void largest_over_ranks(const mpi::Communicator& comm, std::vector<double>& values) {
    mpi::join_over_ranks(comm, values.data(), std::ssize(values), MPI_MAX);
}

bool is_finite(double value) { return std::isfinite(value); }
bool is_finite(const std::complex<double>& value) { return is_finite(value.real()) && is_finite(value.imag()); }

bool is_single(Dtype dtype) { return dtype == Dtype::float32 || dtype == Dtype::complex64; }

/// Of the check's own sums, in double: their errors walk at random, by some 0.2·√n roundings, of which this allows ten
/// times as many.
double own_roundings(const grid::Shape& shape, Dtype dtype) {
    return is_single(dtype) ? 0 : static_cast<double>(shape.n + shape.k) / 16;
}

template <class T>
class TypedCheck final : public RandomCheck {
    using V = Check<T>;
    static constexpr bool exact = std::is_same_v<V, std::uint64_t>;

public:
    TypedCheck(Dtype dtype, const grid::Shape& shape, kernel::Kernel kernel, double of_longest)
        : dtype_(dtype),
          shape_(shape),
          kernel_(kernel),
          of_longest_(of_longest),
          x_(shape.n),
          cx_(shape.m),
          infinite_(static_cast<std::size_t>(shape.m)) {
        const auto seed =
            mix(static_cast<std::uint64_t>(shape.m) ^ mix(static_cast<std::uint64_t>(shape.n)) ^ 0x7469'6C65U);
        for (std::int64_t j = 0; j < shape.n; ++j) {
            x_.first[static_cast<std::size_t>(j)] = random_factor<V>(seed, j, shape.n, 0);
            x_.second[static_cast<std::size_t>(j)] = random_factor<V>(seed, j, shape.n, 1);
        }
    }

    void measure(Context& context, const Part& b) override {
        if constexpr (!exact) {
            if (!sizes_) {
                sizes_.emplace(shape_.n);
            }
            kernel::measure_columns<T>(b.operand, b.block.rows.size(), b.block.columns.size(), *sizes_,
                                       b.block.columns.begin, context.threads);
        }
    }

    grid::Range columns() const override { return {0, shape_.n}; }

    void weigh(Context& context, const grid::Range& columns) override {
        if constexpr (!exact) {
            kernel::ColumnSizes sizes(columns.size());
            if (sizes_) {
                std::copy_n(sizes_->largest.begin() + columns.begin, columns.size(), sizes.largest.begin());
                std::copy_n(sizes_->squares.begin() + columns.begin, columns.size(), sizes.squares.begin());
            }
            largest_over_ranks(context.comm, sizes.largest);
            sum_over_ranks(context.comm, sizes.squares);
            const double least = of_longest_ > 0 ? least_weight(sizes) : 0;
            for (std::size_t index = 0; index < sizes.largest.size(); ++index) {
                const auto j = static_cast<std::size_t>(columns.begin) + index;
                const double weight = least > 0 ? least : weight_of(sizes.largest[index], sizes.squares[index]);
                weights_sum_ += sizes.largest[index] > 0 ? weight : 0;  // products with zeros do not underflow
                x_.weights[j] = weight;
                x_.first[j] *= weight;
                x_.second[j] *= weight;
            }
        }
    }

    std::int64_t see(Context& context, const Part& c) override {
        const auto [rows, columns] = c.block;
        kernel::apply<T>(c.operand, rows.size(), columns.size(), x_, columns.begin, cx_, rows.begin, context.threads);
        if constexpr (!exact) {
            return find_infinite(c);
        }
        return 0;
    }

    void apply_b(Context& context, const Part& b) override {
        if (!bx_) {
            bx_.emplace(shape_.k);
        }
        kernel::apply<T>(b.operand, b.block.rows.size(), b.block.columns.size(), x_, b.block.columns.begin, *bx_,
                         b.block.rows.begin, context.threads);
    }

    void join(Context& context) override {
        sizes_.reset();
        Image<V> bx = bx_ ? std::move(*bx_) : Image<V>(shape_.k);
        bx_.reset();
        z_.emplace(shape_.k);
        r_.emplace(shape_.m);
        z_->first.swap(bx.first);
        z_->second.swap(bx.second);
        sum_over_ranks(context.comm, z_->first);
        sum_over_ranks(context.comm, z_->second);
        if constexpr (!exact) {
            sum_over_ranks(context.comm, bx.sums);
            sum_over_ranks(context.comm, bx.squares);
            for (std::size_t k = 0; k < z_->weights.size(); ++k) {
                const double norm = of_longest_ > 0                 ? 1
                                    : bx.squares[k] > least_squares ? std::sqrt(bx.squares[k])
                                                                    : bx.sums[k];
                // Never 0: a NaN of A makes its row of C one, whatever it meets.
                z_->weights[k] = std::max(norm, std::numeric_limits<double>::denorm_min());
            }
        }
        context.report(Phase::verify, 0.5);
    }

    void apply_a(Context& context, const Part& a) override {
        kernel::apply<T>(a.operand, a.block.rows.size(), a.block.columns.size(), *z_, a.block.columns.begin, *r_,
                         a.block.rows.begin, context.threads);
    }

    Verification judge(Context& context) override {
        Image<V>& r = *r_;
        for (std::size_t i = 0; i < r.first.size(); ++i) {
            r.first[i] -= cx_.first[i];
            r.second[i] -= cx_.second[i];
        }
        sum_over_ranks(context.comm, r.first);
        sum_over_ranks(context.comm, r.second);
        Verification verification{.method = "freivalds", .passed = true};
        if constexpr (exact) {
            judge_exactly(verification, r);
        } else {
            sum_over_ranks(context.comm, r.sums);
            if (of_longest_ > 0) {  // no bound of each row's own
                sum_over_ranks(context.comm, r.squares);
                const double longest = std::sqrt(*std::max_element(r.squares.begin(), r.squares.end()));
                std::fill(r.sums.begin(), r.sums.end(), longest * length * std::sqrt(static_cast<double>(shape_.n)));
            }
            largest_over_ranks(context.comm, infinite_);
            judge_rounded(verification, r);
        }
        return verification;
    }

private:
    /// 0 for a column with numbers that are not finite.
    static double weight_of(double largest, double squares) {
        if (std::isnan(squares) || std::isinf(largest)) {
            return 0;
        }
        const double norm = squares > least_squares && squares < most_squares ? std::sqrt(squares) : largest;
        return std::min(length / norm, largest_weight);
    }

    /// That of the longest column.
    static double least_weight(const kernel::ColumnSizes& sizes) {
        double least = largest_weight;
        for (std::size_t j = 0; j < sizes.squares.size(); ++j) {
            least = std::min(least, weight_of(sizes.largest[j], sizes.squares[j]));
        }
        return least;
    }

    /// Of rows of C whose products are not finite, which columns make them so; the numbers that are not.
    std::int64_t find_infinite(const Part& c) {
        const auto [rows, columns] = c.block;
        const auto first = x_.weights.begin() + columns.begin, last = first + columns.size();
        const bool all_count = std::find(first, last, 0.0) == last;  // a column of weight 0 is in no product
        const T* numbers = reinterpret_cast<const T*>(c.operand.data);
        const std::int64_t down = c.operand.transposed ? 1 : c.operand.stride,
                           across = c.operand.transposed ? c.operand.stride : 1;
        std::int64_t found = 0;
        for (std::int64_t i = 0; i < rows.size(); ++i) {
            const auto row = static_cast<std::size_t>(rows.begin + i);
            if (all_count && is_finite(cx_.first[row]) && is_finite(cx_.second[row])) {
                continue;
            }
            for (std::int64_t j = 0; j < columns.size(); ++j) {
                const auto number = static_cast<V>(numbers[i * down + j * across]);
                const double weight = x_.weights[static_cast<std::size_t>(columns.begin + j)];
                found += is_finite(number) ? 0 : 1;
                if (!is_finite(number * weight)) {
                    infinite_[row] = std::max(infinite_[row], weight);
                }
            }
        }
        return found;
    }

    static void judge_exactly(Verification& verification, const Image<V>& r) {
        const auto wrong = [](const std::vector<V>& residuals) {
            return std::count_if(residuals.begin(), residuals.end(), [](V residual) { return residual != V{}; });
        };
        verification.error = static_cast<double>(wrong(r.first) + wrong(r.second));
        verification.passed = verification.error == 0;
    }

    void judge_rounded(Verification& verification, const Image<V>& r) const {
        constexpr double infinity = std::numeric_limits<double>::infinity();
        verification.tolerance =
            (of_longest_ > 0 ? of_longest_ + own_roundings(shape_, dtype_) : error_growth(shape_, kernel_, dtype_)) *
            roundoff(dtype_);
        // Every roundoff that is promised beside normal numbers may be one of the smallest beside others.
        const double lost = (1 + of_longest_) * underflow(shape_.k, dtype_) * weights_sum_ +
                            underflow(shape_.n + shape_.k, Dtype::float64);
        std::int64_t rows = 0;
        for (std::size_t i = 0; i < r.first.size(); ++i) {
            const double scale = r.sums[i];
            // A finite row can leave the type's range in the product; what is then infinite is right. No element of a
            // column exceeds the row's scale over the column's weight.
            const bool may_overflow = infinite_[i] > 0 && scale / infinite_[i] > largest_number(dtype_) / 4;
            if (!std::isfinite(scale) || may_overflow) {
                continue;
            }
            ++rows;
            const double residual = std::max(std::abs(r.first[i]), std::abs(r.second[i]));
            const double error = infinite_[i] > 0 || !std::isfinite(residual) ? infinity
                                 : residual <= lost                           ? 0
                                 : scale > 0                                  ? (residual - lost) / scale
                                                                              : infinity;
            verification.error = std::max(verification.error, error);
        }
        const auto columns = std::count_if(x_.weights.begin(), x_.weights.end(), [](double w) { return w > 0; });
        const double all = static_cast<double>(shape_.m) * static_cast<double>(shape_.n);
        verification.share = all > 0 ? static_cast<double>(rows) * static_cast<double>(columns) / all : 1;
        verification.passed = verification.error <= verification.tolerance;
    }

    Dtype dtype_;
    grid::Shape shape_;
    kernel::Kernel kernel_;
    double of_longest_;
    Probe<V> x_;
    Image<V> cx_;
    std::optional<kernel::ColumnSizes> sizes_;  // while parts of B come in
    std::optional<Image<V>> bx_, r_;            // this rank's share of B·x; A·z, and then A·z − C·x
    std::optional<Probe<V>> z_;                 // all of B·x
    std::vector<double> infinite_;              // of each row the largest weight of a number that is not finite
    double weights_sum_ = 0;
};

}  // namespace

double error_growth(const grid::Shape& shape, kernel::Kernel kernel, Dtype dtype) {
    const auto k = static_cast<double>(shape.k);
    const double in_product = kernel == kernel::Kernel::plain ? k : std::min(k, 768 + k / 384);
    const double depth = in_product + own_roundings(shape, dtype) + 1;
    return (is_complex(dtype) ? 2 : 1) * std::max(8 * std::sqrt(depth), depth);
}

double underflow(std::int64_t k, Dtype dtype) {
    const double least =
        is_single(dtype) ? std::numeric_limits<float>::denorm_min() : std::numeric_limits<double>::denorm_min();
    return (is_complex(dtype) ? 4 : 1) * static_cast<double>(k) * least;
}

double roundoff(Dtype dtype) {
    return is_single(dtype) ? std::numeric_limits<float>::epsilon() / 2 : std::numeric_limits<double>::epsilon() / 2;
}

double largest_number(Dtype dtype) {
    return is_single(dtype) ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
}

std::unique_ptr<RandomCheck> make_random_check(Dtype dtype, const grid::Shape& shape, kernel::Kernel kernel,
                                               double of_longest) {
    return with_compute_type(dtype, [&](auto tag) -> std::unique_ptr<RandomCheck> {
        return std::make_unique<TypedCheck<typename decltype(tag)::type>>(dtype, shape, kernel, of_longest);
    });
}

}  // namespace tilewise::multiply
