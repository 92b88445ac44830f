// Halves of halves, down to what LAPACK does in one go, and back up.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/factor/lapack.hpp"
#include "tilewise/kernel/factor/two_stage.hpp"
#include "tilewise/kernel/product/gemm.hpp"

namespace tilewise::kernel {
namespace {

/// Some rows of an upper bidiagonal matrix, and where their values and vectors are or will be.
struct BidiagonalPart {
    std::int64_t n;  ///< rows
    double *d, *e;   ///< the diagonal, which becomes the values in no order, and what is above it
    double *u, *vt;  ///< U and Vᵀ of these rows, columns `stride` apart
    std::int64_t stride;
};

constexpr std::int64_t slab = 256;  // rows of U, or columns of Vᵀ, of one product
constexpr std::int64_t roots = 16;  // that a thread looks for before it takes others

enum Group : int { of_left = 0, of_both = 1, of_right = 2, deflated = 3 };

/// C (m×n, column by column) = A·B, both column by column too.
void product(std::int64_t m, std::int64_t n, std::int64_t k, const double* a, std::int64_t a_stride, bool a_turned,
             const double* b, std::int64_t b_stride, double* c, std::int64_t c_stride) {
    gemm({Dtype::float64, n, m, k, operand(b, b_stride), operand(a, a_stride, a_turned),
          reinterpret_cast<std::byte*>(c), c_stride, false},
         1);
}

// One step: the decompositions of two halves become that of the whole. M's rows and columns in three groups, so that
// products leave out what is zero in U' and V':
//
//             first  of B₁  both  of B₂          `first` is the row between the halves in U', and what is left of the
//      U' =  [        u      u         ]         null vectors of both in V'. `both` are those that were rotated into
//            [   1                     ]         each other because their d are equal.
//            [               u     u   ]
class Merge {
public:
    /// `part` has the values and vectors of its first `left` rows, with a column more, and of those after the row that
    /// follows, with `sqre` columns more. `q`: n² numbers.
    Merge(const BidiagonalPart& part, std::int64_t left, std::int64_t sqre, double* q, int threads)
        : p_(part),
          left_(left),
          n_(part.n),
          m_(part.n + sqre),
          threads_(threads),
          q_(q),
          old_(part.d, part.d + part.n),
          z_(static_cast<std::size_t>(part.n)),
          group_(static_cast<std::size_t>(part.n)) {}

    void operator()() {
        make_z();
        deflate();
        arrange();
        tell<double>(effort_beside_products());
        find_roots();
        fit_z();
        make_left_vectors();
        multiply_u();
        make_right_vectors();
        multiply_vt();
        for (std::int64_t i = 0; i < k_; ++i) {
            p_.d[i] = sigma_[at(i)];
        }
        for (std::int64_t i = k_; i < n_; ++i) {
            p_.d[i] = old_[at(order_[at(i)])];
        }
    }

private:
    /// Of each pair of a root and a d: five steps of some ten operations until the root is found (R.-C. Li, "Solving
    /// secular equations stably and efficiently", LAPACK Working Note 89), and 15 for z and the vectors. U and Vᵀ are
    /// copied.
    Effort effort_beside_products() const {
        const auto n = static_cast<double>(n_), k = static_cast<double>(k_);
        return {65 * k * k, 4 * n * n + 4 * k * k};
    }
    static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
    double* u(std::int64_t column) const { return p_.u + column * p_.stride; }

    /// The row between the halves, in terms of the right vectors; of two null vectors one takes all of it.
    void make_z() {
        const double alpha = p_.d[left_], beta = p_.e[left_];
        const double* last = p_.vt + left_ * p_.stride;
        for (std::int64_t i = 0; i <= left_; ++i) {
            z_[at(i)] = alpha * last[i];
        }
        const double* first = last + p_.stride;
        for (std::int64_t i = left_ + 1; i < n_; ++i) {
            z_[at(i)] = beta * first[i];
        }
        old_[at(left_)] = 0;
        tolerance_ = std::max(std::abs(alpha), std::abs(beta));
        for (const double value : old_) {
            tolerance_ = std::max(tolerance_, std::abs(value));
        }
        tolerance_ *= 32 * std::numeric_limits<double>::epsilon();
        if (m_ > n_) {
            const double other = beta * first[n_], both = std::hypot(z_[at(left_)], other);
            if (both > tolerance_) {
                rotate_rows(left_, n_, z_[at(left_)] / both, other / both);
            }
            z_[at(left_)] = both;
        }
        if (std::abs(z_[at(left_)]) <= tolerance_) {
            z_[at(left_)] = tolerance_;
        }
    }

    /// Rows i and j of Vᵀ become c·i + s·j and c·j − s·i.
    void rotate_rows(std::int64_t i, std::int64_t j, double c, double s) const {
        double* column = p_.vt;
        for (std::int64_t x = 0; x < m_; ++x, column += p_.stride) {
            const double a = column[i], b = column[j];
            column[i] = c * a + s * b;
            column[j] = c * b - s * a;
        }
    }

    void rotate_columns(std::int64_t i, std::int64_t j, double c, double s) const {
        double *x = u(i), *y = u(j);
        for (std::int64_t r = 0; r < n_; ++r) {
            const double a = x[r], b = y[r];
            x[r] = c * a + s * b;
            y[r] = c * b - s * a;
        }
    }

    /// Which columns have nothing to do with the others, or would only repeat another's d. `order_`: those that stay,
    /// by d.
    void deflate() {
        std::vector<std::int64_t> by_size;
        for (std::int64_t i = 0; i < n_; ++i) {
            group_[at(i)] = i < left_ ? of_left : of_right;
            if (i != left_) {
                by_size.push_back(i);
            }
        }
        group_[at(left_)] = of_both;
        std::stable_sort(by_size.begin(), by_size.end(), [&](auto i, auto j) { return old_[at(i)] < old_[at(j)]; });
        order_ = {left_};
        for (const std::int64_t i : by_size) {
            if (std::abs(z_[at(i)]) <= tolerance_) {
                group_[at(i)] = deflated;
                continue;
            }
            const std::int64_t before = order_.back();
            if (before != left_ && old_[at(i)] - old_[at(before)] <= tolerance_) {
                const double both = std::hypot(z_[at(i)], z_[at(before)]), c = z_[at(i)] / both,
                             s = z_[at(before)] / both;
                rotate_columns(i, before, c, s);
                rotate_rows(i, before, c, s);
                z_[at(i)] = both;
                group_[at(i)] = group_[at(i)] == group_[at(before)] ? group_[at(i)] : of_both;
                group_[at(before)] = deflated;
                order_.back() = i;
            } else {
                order_.push_back(i);
            }
        }
        k_ = std::ssize(order_);
    }

    /// The problem by size of d, and the sequence of its rows in Q, by groups.
    void arrange() {
        for (std::int64_t i = 0; i < k_; ++i) {
            const std::int64_t from = order_[at(i)];
            d_.push_back(i == 0 ? 0 : std::max(old_[at(from)], i == 1 ? tolerance_ / 2 : 0.0));
            weight_.push_back(z_[at(from)]);
        }
        std::vector<std::int64_t> by_group(at(k_));
        std::iota(by_group.begin(), by_group.end(), 0);
        std::stable_sort(by_group.begin() + 1, by_group.end(),
                         [&](auto i, auto j) { return group_[at(order_[at(i)])] < group_[at(order_[at(j)])]; });
        rows_ = std::move(by_group);
        const auto count = [&](Group group) {
            return std::count_if(order_.begin() + 1, order_.end(), [&](auto i) { return group_[at(i)] == group; });
        };
        lefts_ = count(of_left);
        boths_ = count(of_both);
        rights_ = count(of_right);
        for (std::int64_t i = 0; i < n_; ++i) {
            if (group_[at(i)] == deflated) {
                order_.push_back(i);
            }
        }
    }

    /// Column i of Q becomes d − σᵢ.
    void find_roots() {
        const double norm = std::sqrt(std::inner_product(weight_.begin(), weight_.end(), weight_.begin(), 0.0));
        std::vector<double> unit = weight_;
        for (double& value : unit) {
            value /= norm;
        }
        const double rho = norm * norm;
        sigma_.resize(at(k_));
        if (k_ == 1) {
            sigma_[0] = std::abs(weight_[0]);
            q_[0] = -sigma_[0];
            return;
        }
        parallel_tasks(threads_, (k_ + roots - 1) / roots, [&](std::int64_t task, int) {
            std::vector<double> sums(at(k_));
            for (std::int64_t i = task * roots; i < std::min(k_, (task + 1) * roots); ++i) {
                const int size = lapack_int(k_), number = lapack_int(i + 1);
                int info = 0;
                TILEWISE_BLAS(dlasd4_)
                (&size, &number, d_.data(), unit.data(), q_ + i * k_, &rho, &sigma_[at(i)], sums.data(), &info);
                check_lapack(info, "lasd4");
            }
        });
    }

    /// The z of which the roots found are exact ones.
    void fit_z() {
        if (k_ == 1) {
            return;
        }
        fitted_.resize(at(k_));
        parallel_ranges(threads_, k_, [&](std::int64_t begin, std::int64_t end, int) {
            for (std::int64_t i = begin; i < end; ++i) {
                fitted_[at(i)] = q_[i + (k_ - 1) * k_] * (d_[at(i)] + sigma_[at(k_ - 1)]);
            }
            for (std::int64_t j = 0; j + 1 < k_; ++j) {
                const double* column = q_ + j * k_;
                const double sigma = sigma_[at(j)], lower = d_[at(j)], upper = d_[at(j + 1)];
                const auto fit = [&](std::int64_t from, std::int64_t to, double other) {
                    for (std::int64_t i = from; i < to; ++i) {
                        const double x = d_[at(i)];
                        fitted_[at(i)] *= column[i] * (x + sigma) / ((x - other) * (x + other));
                    }
                };
                fit(begin, std::min(end, j + 1), upper);
                fit(std::max(begin, j + 1), end, lower);
            }
            for (std::int64_t i = begin; i < end; ++i) {
                fitted_[at(i)] = std::copysign(std::sqrt(std::abs(fitted_[at(i)])), weight_[at(i)]);
            }
        });
    }

    /// Column i of Q becomes the left vector of σᵢ in M, its rows by groups; `ratio_`: that of the right vector's norm.
    void make_left_vectors() {
        ratio_.resize(at(k_));
        if (k_ == 1) {
            q_[0] = weight_[0] < 0 ? -1 : 1;
            return;
        }
        parallel_ranges(threads_, k_, [&](std::int64_t begin, std::int64_t end, int) {
            std::vector<double> right(at(k_)), both(at(k_));
            for (std::int64_t i = begin; i < end; ++i) {
                double* column = q_ + i * k_;
                const double sigma = sigma_[at(i)];
                double of_right = 0, of_left = 1;
                for (std::int64_t j = 0; j < k_; ++j) {
                    right[at(j)] = fitted_[at(j)] / column[j] / (d_[at(j)] + sigma);
                    both[at(j)] = d_[at(j)] * right[at(j)];
                }
                for (std::int64_t j = 0; j < k_; ++j) {
                    of_right += right[at(j)] * right[at(j)];
                    of_left += both[at(j)] * both[at(j)];
                }
                of_left = std::sqrt(of_left);
                of_right = std::sqrt(of_right);
                ratio_[at(i)] = of_left / of_right;
                column[0] = -1 / of_left;
                for (std::int64_t j = 1; j < k_; ++j) {
                    column[j] = both[at(rows_[at(j)])] / of_left;
                }
            }
        });
    }

    /// The same for the right vectors, from the left ones.
    void make_right_vectors() {
        if (k_ == 1) {
            q_[0] = 1;
            return;
        }
        parallel_ranges(threads_, k_, [&](std::int64_t begin, std::int64_t end, int) {
            for (std::int64_t i = begin; i < end; ++i) {
                double* column = q_ + i * k_;
                const double ratio = ratio_[at(i)];
                // z₁ / (0 − σ²), over the norm of the right vector, of which −1 / column[0] is that of the left one.
                column[0] = -(fitted_[0] / sigma_[at(i)] / sigma_[at(i)]) * ratio * -column[0];
                for (std::int64_t j = 1; j < k_; ++j) {
                    column[j] *= ratio / d_[at(rows_[at(j)])];
                }
            }
        });
    }

    /// U'·Q, some rows at a time: those columns that are not zero there, and what went out as it was.
    void multiply_u() const {
        const std::int64_t tops = (left_ + slab - 1) / slab, all = tops + (n_ - left_ - 1 + slab - 1) / slab;
        std::vector<Array<double>> memory(at(threads_));
        parallel_tasks(threads_, all, [&](std::int64_t task, int thread) {
            const bool top = task < tops;
            const std::int64_t begin = top ? task * slab : left_ + 1 + (task - tops) * slab,
                               rows = std::min(slab, (top ? left_ : n_) - begin), from = top ? 1 : 1 + lefts_,
                               count = top ? lefts_ + boths_ : boths_ + rights_;
            double *const kept = memory[at(thread)].grow(rows * n_), *to = kept;
            for (std::int64_t j = 0; j < count; ++j) {
                to = std::copy_n(u(order_[at(rows_[at(from + j)])]) + begin, rows, to);
            }
            double* rest = to;
            for (std::int64_t j = k_; j < n_; ++j) {
                to = std::copy_n(u(order_[at(j)]) + begin, rows, to);
            }
            if (count > 0) {
                product(rows, k_, count, kept, rows, false, q_ + from, k_, u(0) + begin, p_.stride);
            } else {
                for (std::int64_t j = 0; j < k_; ++j) {
                    std::fill_n(u(j) + begin, rows, 0.0);
                }
            }
            for (std::int64_t j = k_; j < n_; ++j, rest += rows) {
                std::copy_n(rest, rows, u(j) + begin);
            }
        });
        for (std::int64_t j = 0; j < n_; ++j) {
            u(j)[left_] = j < k_ ? q_[j * k_] : 0;
        }
    }

    /// Qᵀ·V'ᵀ, some columns at a time. The last row, where there is one more, is the null vector and stays.
    void multiply_vt() const {
        const std::int64_t lefts = left_ + 1, tops = (lefts + slab - 1) / slab,
                           all = tops + (m_ - lefts + slab - 1) / slab;
        std::vector<Array<double>> memory(at(threads_));
        std::vector<double> of_first(at(k_));  // once, as it lies across all columns of Q
        for (std::int64_t j = 0; j < k_; ++j) {
            of_first[at(j)] = q_[j * k_];
        }
        parallel_tasks(threads_, all, [&](std::int64_t task, int thread) {
            const bool top = task < tops;
            const std::int64_t begin = top ? task * slab : lefts + (task - tops) * slab,
                               columns = std::min(slab, (top ? lefts : m_) - begin), skipped = top ? 0 : lefts_,
                               count = 1 + (top ? lefts_ + boths_ : boths_ + rights_);
            double *const kept = memory[at(thread)].grow((count + n_ - k_) * columns), *rest = kept + count * columns;
            // Row `first`, and then those of the groups that are not zero here.
            for (std::int64_t x = 0; x < columns; ++x) {
                const double* column = p_.vt + (begin + x) * p_.stride;
                double* to = kept + x * count;
                to[0] = column[left_];
                for (std::int64_t j = 1; j < count; ++j) {
                    to[j] = column[order_[at(rows_[at(skipped + j)])]];
                }
                for (std::int64_t j = k_; j < n_; ++j) {
                    rest[x * (n_ - k_) + j - k_] = column[order_[at(j)]];
                }
            }
            double* to = p_.vt + begin * p_.stride;
            product(k_, columns, count - 1, q_ + 1 + skipped, k_, true, kept + 1, count, to, p_.stride);
            for (std::int64_t x = 0; x < columns; ++x, to += p_.stride) {
                const double first = kept[x * count];
                for (std::int64_t j = 0; j < k_; ++j) {
                    to[j] = (count > 1 ? to[j] : 0.0) + of_first[at(j)] * first;
                }
                std::copy_n(rest + x * (n_ - k_), n_ - k_, to + k_);
            }
        });
    }

    BidiagonalPart p_;
    std::int64_t left_, n_, m_;
    int threads_;
    double* q_;
    std::vector<double> old_;  ///< d of both halves, 0 between them
    std::vector<double> z_;
    std::vector<int> group_;
    double tolerance_ = 0;
    std::int64_t k_ = 0;               ///< size of what is left of M
    std::vector<std::int64_t> order_;  ///< columns of U' and rows of V'ᵀ: those of M by d, then those that went out
    std::vector<std::int64_t> rows_;   ///< row j of Q is that of the rows_[j]-th of M by d
    std::int64_t lefts_ = 0, boths_ = 0, rights_ = 0;
    std::vector<double> d_, weight_, fitted_, sigma_, ratio_;
};

constexpr std::int64_t leaf_size = 256, lapack_leaf_size = 25;

void solve_leaf(const BidiagonalPart& part, std::int64_t sqre) {
    const int n = lapack_int(part.n), square = lapack_int(sqre), ld = lapack_int(part.stride), small = lapack_leaf_size;
    std::vector<int> integers(static_cast<std::size_t>(8 * part.n));
    const std::int64_t m = part.n + sqre;
    const Array<double> work(3 * m * m + 4 * m + 64);
    int info = 0;
    tell<double>(effort::bdsdc(n));
    TILEWISE_BLAS(dlasd0_)
    (&n, &square, part.d, part.e, part.u, &ld, part.vt, &ld, &small, integers.data(), work.data(), &info);
    check_lapack(info, "lasd0");
}

/// A node of the tree: rows [begin, begin + n), and whether there is a column more than rows.
struct Node {
    std::int64_t begin, n, sqre;
};

/// Sorts values and vectors, the largest value first.
void sort_descending(std::int64_t n, double* d, double* u, double* vt, int threads) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](auto i, auto j) { return d[i] > d[j]; });
    const std::vector<double> values(d, d + n);
    for (std::int64_t i = 0; i < n; ++i) {
        d[i] = values[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])];
    }
    const auto rows = [&](double* matrix, std::int64_t step, std::int64_t begin, std::int64_t end) {
        std::vector<double> row(static_cast<std::size_t>(n));
        for (std::int64_t i = begin; i < end; ++i) {
            double* at = matrix + i * (step == 1 ? n : 1);
            for (std::size_t j = 0; j < row.size(); ++j) {
                row[j] = at[order[j] * step];
            }
            for (std::size_t j = 0; j < row.size(); ++j) {
                at[static_cast<std::int64_t>(j) * step] = row[j];
            }
        }
    };
    parallel_ranges(threads, n, [&](std::int64_t begin, std::int64_t end, int) { rows(vt, 1, begin, end); });
    // Columns of U go round in cycles, some rows at a time.
    parallel_ranges(threads, n, [&](std::int64_t begin, std::int64_t end, int) {
        std::vector<std::int64_t> next = order;
        std::vector<double> aside(static_cast<std::size_t>(end - begin));
        const auto column = [&](std::int64_t j) { return u + j * n + begin; };
        for (std::int64_t first = 0; first < n; ++first) {
            if (next[static_cast<std::size_t>(first)] == first) {
                continue;
            }
            std::copy_n(column(first), end - begin, aside.data());
            for (std::int64_t to = first;;) {
                const std::int64_t from = std::exchange(next[static_cast<std::size_t>(to)], to);
                std::copy_n(from == first ? aside.data() : column(from), end - begin, column(to));
                if (from == first) {
                    break;
                }
                to = from;
            }
        }
    });
}

}  // namespace

void bidiagonal_svd(std::int64_t n, double* d, double* e, double* u, double* vt, int threads) {
    const BlasThreads blas(1);
    if (u == nullptr) {
        const int size = lapack_int(n), one = 1;
        int info = 0;
        const Array<double> work(8 * n);
        std::vector<int> integers(static_cast<std::size_t>(8 * n));
        tell<double>(effort::sterf(size));
        TILEWISE_BLAS(dbdsdc_)
        ("U", "N", &size, d, e, nullptr, &one, nullptr, &one, nullptr, nullptr, work.data(), integers.data(), &info);
        check_lapack(info, "bdsdc");
        return;
    }
    double largest = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        largest = std::max({largest, std::abs(d[i]), i + 1 < n ? std::abs(e[i]) : 0.0});
    }
    for (std::int64_t i = 0; i < n; ++i) {
        u[i * (n + 1)] = vt[i * (n + 1)] = 1;  // LAPACK's small problems multiply with what is there
    }
    if (largest == 0) {
        return;
    }
    // A power of two, so that nothing is rounded; all further tolerances are relative to 1. No d is 0, as in bdsdc:
    // parts that are zero have no scale.
    constexpr double least = std::numeric_limits<double>::epsilon() / 2;
    const int scale = std::ilogb(largest);
    for (std::int64_t i = 0; i < n; ++i) {
        d[i] = std::ldexp(d[i], -scale);
        d[i] = std::abs(d[i]) < least ? std::copysign(least, d[i]) : d[i];
        e[i] = i + 1 < n ? std::ldexp(e[i], -scale) : 0;
    }
    std::vector<std::vector<Node>> levels{{{0, n, 0}}};
    while (levels.back().front().n > leaf_size) {
        std::vector<Node> next;
        for (const Node& node : levels.back()) {
            const std::int64_t left = node.n / 2;
            next.push_back({node.begin, left, 1});
            next.push_back({node.begin + left + 1, node.n - left - 1, node.sqre});
        }
        levels.push_back(std::move(next));
    }
    const auto part = [&](const Node& node) {
        const std::int64_t at = node.begin * (n + 1);
        return BidiagonalPart{node.n, d + node.begin, e + node.begin, u + at, vt + at, n};
    };
    parallel_tasks(threads, std::ssize(levels.back()), [&](std::int64_t task, int) {
        const Node& node = levels.back()[static_cast<std::size_t>(task)];
        solve_leaf(part(node), node.sqre);
    });
    levels.pop_back();
    Array<double> q;
    for (; !levels.empty(); levels.pop_back()) {
        for (const Node& node : levels.back()) {
            Merge(part(node), node.n / 2, node.sqre, q.grow(node.n * node.n), threads)();
        }
    }
    q = {};
    sort_descending(n, d, u, vt, threads);
    for (std::int64_t i = 0; i < n; ++i) {
        d[i] = std::ldexp(d[i], scale);
    }
}

}  // namespace tilewise::kernel
