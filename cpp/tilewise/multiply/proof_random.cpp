// Freivalds' check, distributed: two reductions of vectors, and one pass of each rank over its own blocks.
//
//     x (random)  ─▶  z = B·x  ─▶  r = A·z − C·x         each rank adds its blocks' share to vectors of full length,
//                  sum over ranks        sum over ranks  which are then summed over the ranks
//
// The signs of x do not depend on the data, so rounding errors e_i of a row add up to more than 8·‖e_i‖ with a probability below 10⁻¹³.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "tilewise/base/random.hpp"
#include "tilewise/kernel/apply.hpp"
#include "tilewise/mpi/datatype.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/multiply/proof.hpp"

namespace tilewise::multiply {
namespace {

using kernel::Check;
using kernel::Pair;
using mpi::check;

/// Of magnitude 1/2 … 1 and random sign: no element of C is hidden behind a small factor, and two wrong ones do not cancel.
template <class V> V random_factor(std::uint64_t bits) {
    if constexpr (std::is_same_v<V, std::uint64_t>) {
        return bits | 1U;  // odd: no wrong element is multiplied away modulo 2⁶⁴
    } else {
        const double magnitude = 0.5 + 0.5 * uniform(bits);
        return V((bits & 1U) != 0 ? magnitude : -magnitude);
    }
}

template <class V> void sum_over_ranks(const mpi::Communicator& comm, std::vector<V>& values) {
    mpi::sum_over_ranks(comm, values.data(), std::ssize(values));
}

double epsilon_of(Dtype dtype) {
    return dtype == Dtype::float32 || dtype == Dtype::complex64 ? std::numeric_limits<float>::epsilon() / 2
                                                                : std::numeric_limits<double>::epsilon() / 2;
}

double largest_of(Dtype dtype) {
    return dtype == Dtype::float32 || dtype == Dtype::complex64 ? std::numeric_limits<float>::max()
                                                                : std::numeric_limits<double>::max();
}

/// Squares of numbers this small vanish, so nothing can be said of them.
constexpr double smallest_norm = 1e-140;

template <class T>
class TypedCheck final : public RandomCheck {
    using V = Check<T>;

public:
    TypedCheck(Dtype dtype, const grid::Shape& shape, kernel::Kernel kernel)
        : dtype_(dtype),
          shape_(shape),
          kernel_(kernel),
          x_(shape.n),
          cx_(shape.m) {
        const auto seed =
            mix(static_cast<std::uint64_t>(shape.m) ^ mix(static_cast<std::uint64_t>(shape.n)) ^ 0x7469'6C65U);
        for (std::size_t j = 0; j < x_.first.size(); ++j) {
            x_.first[j] = random_factor<V>(random_bits(seed, 2 * j));
            x_.second[j] = random_factor<V>(random_bits(seed, 2 * j + 1));
        }
        c_squares_.resize(static_cast<std::size_t>(shape.m));
    }

    void see(Context& context, const Part& c) override {
        kernel::apply<T>(c.operand, c.block.rows.size(), c.block.columns.size(), x_, c.block.columns.begin, cx_,
                         c.block.rows.begin, c_squares_, context.threads);
    }

    Verification conclude(Context& context, const Part& a, const Part& b) override {
        Pair<V> z(shape_.k), r(shape_.m);
        std::vector<double> a_squares(static_cast<std::size_t>(shape_.m)),
            b_squares(static_cast<std::size_t>(shape_.k));
        kernel::apply<T>(b.operand, b.block.rows.size(), b.block.columns.size(), x_, b.block.columns.begin, z,
                         b.block.rows.begin, b_squares, context.threads);
        sum_over_ranks(context.comm, z.first);
        sum_over_ranks(context.comm, z.second);
        sum_over_ranks(context.comm, b_squares);
        context.report(Phase::verify, 0.5);
        kernel::apply<T>(a.operand, a.block.rows.size(), a.block.columns.size(), z, a.block.columns.begin, r,
                         a.block.rows.begin, a_squares, context.threads);
        for (std::size_t i = 0; i < r.first.size(); ++i) {
            r.first[i] -= cx_.first[i];
            r.second[i] -= cx_.second[i];
        }
        sum_over_ranks(context.comm, r.first);
        sum_over_ranks(context.comm, r.second);
        sum_over_ranks(context.comm, a_squares);
        Verification verification{.method = "freivalds", .passed = true};
        if constexpr (std::is_same_v<V, std::uint64_t>) {
            judge_exactly(verification, r);
        } else {
            judge(verification, r, a_squares, b_squares);
        }
        return verification;
    }

private:
    static void judge_exactly(Verification& verification, const Pair<V>& r) {
        const auto wrong = [](const std::vector<V>& residuals) {
            return std::count_if(residuals.begin(), residuals.end(), [](V residual) { return residual != V{}; });
        };
        verification.error = static_cast<double>(wrong(r.first) + wrong(r.second));
        verification.passed = verification.error == 0;
    }

    void judge(Verification& verification, const Pair<V>& r, const std::vector<double>& a_squares,
               const std::vector<double>& b_squares) const {
        double b_square = 0;
        for (const double square : b_squares) {
            b_square += square;
        }
        const double b_norm = std::sqrt(b_square);
        verification.tolerance = error_growth(shape_, kernel_, dtype_) * epsilon_of(dtype_);
        for (std::size_t i = 0; i < r.first.size(); ++i) {
            const double a_norm = std::sqrt(a_squares[i]);
            const double scale = a_norm * b_norm;
            const double residual = std::max(std::abs(r.first[i]), std::abs(r.second[i]));
            const bool exact_zero = scale == 0 && residual == 0;
            const bool tiny = a_norm < smallest_norm || b_norm < smallest_norm || scale < smallest_norm;
            // A finite row can leave the type's range in the product; what is then infinite is right.
            const bool may_overflow = !std::isfinite(residual) && scale > 0.01 * largest_of(dtype_);
            if (exact_zero) {
                continue;
            }
            if (!std::isfinite(scale) || tiny || may_overflow) {
                ++verification.unchecked_rows;
                continue;
            }
            const double error = std::isfinite(residual) ? residual / scale : std::numeric_limits<double>::infinity();
            verification.error = std::max(verification.error, error);
        }
        verification.passed = verification.error <= verification.tolerance;
    }

    Dtype dtype_;
    grid::Shape shape_;
    kernel::Kernel kernel_;
    Pair<V> x_, cx_;
    std::vector<double> c_squares_;
};

}  // namespace

double error_growth(const grid::Shape& shape, kernel::Kernel kernel, Dtype dtype) {
    const auto k = static_cast<double>(shape.k), n = static_cast<double>(shape.n);
    const double in_product = kernel == kernel::Kernel::plain ? k : std::min(k, 768 + k / 384);
    const double depth = in_product + (n + k) / 64 + 1;  // the second part is the check's own sums
    return (is_complex(dtype) ? 2 : 1) * std::max(8 * std::sqrt(depth), depth / 2);
}

std::unique_ptr<RandomCheck> make_random_check(Dtype dtype, const grid::Shape& shape, kernel::Kernel kernel) {
    return with_compute_type(dtype, [&](auto tag) -> std::unique_ptr<RandomCheck> {
        return std::make_unique<TypedCheck<typename decltype(tag)::type>>(dtype, shape, kernel);
    });
}

}  // namespace tilewise::multiply
