// Halves of halves, down to what LAPACK does in one go on one rank, and back up, all ranks together.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "tilewise/dist/gram_eigen.hpp"
#include "tilewise/grid/share.hpp"
#include "tilewise/kernel/factor/lapack.hpp"

namespace tilewise::dist {

using namespace kernel;
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// An eigenvalue as what is nearest of D, and how far it is from there: so that its distance from any of D has all
/// digits.
struct Root {
    std::int64_t nearest = 0;
    double beyond = 0;
};

/// Of two values, where LAPACK has no distances to tell: each is a root of a quadratic of its distance from either,
/// and the sign of its linear term says how not to cancel.
Root root_of_two(std::int64_t index, const std::vector<double>& poles, const std::vector<double>& z, double beside) {
    const double gap = poles[1] - poles[0], sum = beside * (z[0] * z[0] + z[1] * z[1]);
    if (index == 0) {  // t² − (gap + sum)·t + |b|·z₁²·gap = 0, the smaller one, from the lower
        const double b = gap + sum, c = beside * z[0] * z[0] * gap;
        const double apart = gap - beside * (z[0] * z[0] - z[1] * z[1]);
        const double root = std::hypot(apart, 2 * beside * z[0] * z[1]);  // of b² − 4c
        return {0, 2 * c / (b + root)};
    }
    // t² + (gap − sum)·t − |b|·z₂²·gap = 0, the positive one, from the upper
    const double b = gap - sum, c = beside * z[1] * z[1] * gap, root = std::sqrt(b * b + 4 * c);
    return {1, b > 0 ? 2 * c / (b + root) : (root - b) / 2};
}

// Two halves of a symmetric tridiagonal matrix, each decomposed, become the whole: one step of divide and conquer, in
// parts that ranks can share.
//
//      [ T₁ b ]  =  [ T₁'   ] + |b|·[ 1  ±1 ]     T₁' = Q₁·D₁·Q₁ᵀ, T₂' alike, so that T is orthogonally similar to
//      [ b T₂ ]     [    T₂']       [ ±1  1 ]     D + |b|·z·zᵀ, z the last row of Q₁ and, with the sign of b, the first
//                                                 one of Q₂; λ are roots of 1 + |b|·Σ zᵢ²/(dᵢ − λ) = 0
//
// What has a z that is too small, and all but one of equal d, are eigenvalues already. The vectors are those of a z
// that fits the roots exactly, which makes them orthogonal.
//
//      each root by itself ──▶ all roots known ──▶ each weight by itself ──▶ all known ──▶ each vector by itself
//
// M. Gu, S. Eisenstat, "A divide-and-conquer algorithm for the symmetric tridiagonal eigenproblem", 1995; F. Tisseur,
// J. Dongarra, "A parallel divide and conquer algorithm for the symmetric eigenvalue problem on distributed memory
// architectures", 1999.
class TridiagonalMerge {
public:
    /// D of both halves one after the other, and z; `beside` is |b|. All numbers of the matrix are about 1 at most.
    TridiagonalMerge(std::vector<double> d, std::vector<double> z, double beside)
        : d_(std::move(d)),
          beside_(2 * beside) {
        for (double& value : z) {  // two rows of length 1
            value *= std::sqrt(0.5);
        }
        deflate(std::move(z));
    }

    /// How many eigenvalues are roots, and not of D.
    std::int64_t roots() const { return static_cast<std::int64_t>(kept_.size()); }
    /// Five steps of some ten operations for each of D (R.-C. Li, "Solving secular equations stably and efficiently",
    /// LAPACK Working Note 89).
    Root root(std::int64_t index) const {
        tell<double>({50 * static_cast<double>(roots()), 0});
        if (roots() == 1) {
            return {0, beside_ * z_[0] * z_[0]};
        }
        if (roots() == 2) {
            return root_of_two(index, poles_, z_, beside_);
        }
        std::vector<double> apart(z_.size());
        const int size = lapack_int(roots()), number = lapack_int(index + 1);
        double value = 0;
        int info = 0;
        TILEWISE_BLAS(dlaed4_)(&size, &number, poles_.data(), z_.data(), apart.data(), &beside_, &value, &info);
        check_lapack(info, "laed4");
        const auto nearest =
            std::min_element(apart.begin(), apart.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
        return {nearest - apart.begin(), -*nearest};
    }
    /// Takes them all, and then knows the eigenvalues.
    void take_roots(const Root* roots) {
        roots_.assign(roots, roots + kept_.size());
        std::vector<double> values;
        for (const Root& root : roots_) {
            values.push_back(poles_[at(root.nearest)] + root.beyond);
            order_.push_back(std::ssize(order_));
        }
        for (const std::int64_t i : out_) {
            order_.push_back(-1 - i);
        }
        const auto value = [&](std::int64_t one) { return one < 0 ? d_[at(-1 - one)] : values[at(one)]; };
        std::stable_sort(order_.begin(), order_.end(), [&](auto i, auto j) { return value(i) < value(j); });
        for (const std::int64_t one : order_) {
            values_.push_back(value(one));
        }
    }
    double weight(std::int64_t index) const {
        tell<double>({8 * static_cast<double>(roots()), 0});
        double square = -apart(index, index);
        for (std::int64_t j = 0; j < roots(); ++j) {
            if (j != index) {
                square *= apart(index, j) / (poles_[at(index)] - poles_[at(j)]);
            }
        }
        return std::copysign(std::sqrt(std::abs(square)), z_[at(index)]);
    }
    void take_weights(const double* weights) { weights_.assign(weights, weights + kept_.size()); }

    /// Ascending.
    const std::vector<double>& values() const { return values_; }
    /// The eigenvector of one of them: by so much it has of each vector of the halves. `to` is zero at first.
    void vector(std::int64_t value, double* to) const {
        const std::int64_t one = order_[at(value)];
        if (one < 0) {
            to[-1 - one] = 1;
        } else {
            tell<double>({7 * static_cast<double>(roots()), 0});
            double squares = 0;
            for (std::int64_t i = 0; i < roots(); ++i) {
                const double part = weights_[at(i)] / apart(i, one);
                squares += part * part;
                to[kept_[at(i)]] = part;
            }
            const double norm = std::sqrt(squares);
            for (const std::int64_t i : kept_) {
                to[i] /= norm;
            }
        }
        for (auto turned = rotations_.rbegin(); turned != rotations_.rend(); ++turned) {
            const double in = to[turned->in], out = to[turned->out];
            to[turned->in] = turned->c * in - turned->s * out;
            to[turned->out] = turned->s * in + turned->c * out;
        }
    }

private:
    struct Rotation {
        std::int64_t out, in;  ///< what leaves, and what it was turned with
        double c, s;
    };

    void deflate(std::vector<double> z) {
        double largest = 0;
        for (std::size_t i = 0; i < d_.size(); ++i) {
            largest = std::max({largest, std::abs(d_[i]), std::abs(z[i])});
        }
        const double tolerance = 8 * std::numeric_limits<double>::epsilon() * largest;
        std::vector<std::int64_t> by_size(d_.size());
        std::iota(by_size.begin(), by_size.end(), 0);
        std::stable_sort(by_size.begin(), by_size.end(), [&](auto i, auto j) { return d_[at(i)] < d_[at(j)]; });
        for (const std::int64_t i : by_size) {
            if (beside_ * std::abs(z[at(i)]) <= tolerance) {
                out_.push_back(i);
                continue;
            }
            if (!kept_.empty()) {
                // Turned so that one has all of z, they would be coupled by c·s·(dᵢ − dⱼ), which is left out where it
                // is rounding.
                const std::int64_t before = kept_.back();
                const double both = std::hypot(z[at(i)], z[at(before)]), c = z[at(i)] / both, s = z[at(before)] / both,
                             lower = d_[at(before)], upper = d_[at(i)];
                if (std::abs(c * s * (upper - lower)) <= tolerance) {
                    rotations_.push_back({before, i, c, s});
                    z[at(i)] = both;
                    d_[at(before)] = c * c * lower + s * s * upper;
                    d_[at(i)] = s * s * lower + c * c * upper;
                    out_.push_back(before);
                    kept_.back() = i;
                    continue;
                }
            }
            kept_.push_back(i);
        }
        for (const std::int64_t i : kept_) {
            poles_.push_back(d_[at(i)]);
            z_.push_back(z[at(i)]);
        }
    }
    /// dᵢ − λ of a root.
    double apart(std::int64_t index, std::int64_t root) const {
        const Root& one = roots_[at(root)];
        return (poles_[at(index)] - poles_[at(one.nearest)]) - one.beyond;
    }

    std::vector<double> d_;
    double beside_;
    std::vector<std::int64_t> kept_, out_;  ///< by D; `poles_` and `z_` are of those that are kept
    std::vector<Rotation> rotations_;
    std::vector<double> poles_, z_, weights_, values_;
    std::vector<Root> roots_;
    std::vector<std::int64_t> order_;  ///< of the sorted values: a root, or −1 − i for d_[i]
};

using grid::Partition;
using grid::Range;
using Parts = std::vector<Range>;
using ColumnsOfRank = std::function<Range(int rank)>;

std::int64_t largest_of(const Parts& parts) {
    std::int64_t most = 0;
    for (const Range& part : parts) {
        most = std::max(most, part.size());
    }
    return most;
}

/// Numbers of which each rank makes its share, `high` for each of `count` things.
template <class Make> std::vector<double> shared(std::int64_t count, std::int64_t high, const ColumnComm& comm,
                                                 Make make) {
    const Partition shares(count, comm.size());
    const Range mine = shares[comm.rank()];
    std::vector<double> own(at(high * mine.size())), all(at(high * count));
    for (std::int64_t i = mine.begin; i < mine.end; ++i) {
        make(i, own.data() + (i - mine.begin) * high);
    }
    std::vector<int> owners(at(count));
    for (std::int64_t i = 0; i < count; ++i) {
        owners[at(i)] = shares.part_of(i);
    }
    if (count > 0) {
        comm.gather(SpreadColumns{{own.data(), high, mine.size(), high}, owners}, 0, count, 0, all.data());
    }
    return all;
}

Matrix without_gaps(std::int64_t rows, std::int64_t count) {
    Matrix m;
    m.rows = m.stride = rows;
    m.count = count;
    m.memory = Array<double>(rows * count);
    return m;
}

class Divide {
public:
    Divide(std::vector<double> diagonal, std::vector<double> beside, const ColumnsOfRank& wanted,
           const ColumnComm& comm, std::int64_t leaf)
        : team_(comm),
          wanted_(wanted),
          n_(std::ssize(diagonal)),
          d_(std::move(diagonal)),
          e_(std::move(beside)),
          levels_{{{0, n_}}} {
        while (largest_of(levels_.back()) > std::max<std::int64_t>(leaf, 2)) {
            Parts halves;
            for (const Range& part : levels_.back()) {
                const std::int64_t middle = part.begin + (part.size() + 1) / 2;
                halves.push_back({part.begin, middle});
                halves.push_back({middle, part.end});
            }
            levels_.push_back(std::move(halves));
        }
    }

    Array<double> operator()() {
        scale();
        for (const Range& part : levels_.back()) {  // torn from the one before
            if (part.begin > 0) {
                const double beside = std::abs(e_[at(part.begin - 1)]);
                d_[at(part.begin - 1)] -= beside;
                d_[at(part.begin)] -= beside;
            }
        }
        solve_leaves();
        while (level_ > 0) {
            merge();
        }
        return std::move(q_.memory);
    }

private:
    const Parts& parts(std::int64_t level) const { return levels_[at(level)]; }
    ColumnsOfRank columns_of(std::int64_t level) const {
        if (level == 0) {
            return wanted_;
        }
        return [columns = Partition(n_, team_.size())](int rank) { return columns[rank]; };
    }
    Range mine(std::int64_t level) const { return columns_of(level)(team_.rank()); }
    SpreadColumns spread() const { return {q_.columns(), owners_}; }

    /// By a power of two, so that nothing is rounded: limits of what counts as nothing are relative to 1.
    void scale() {
        double largest = 0;
        for (std::int64_t i = 0; i < n_; ++i) {
            largest = std::max({largest, std::abs(d_[at(i)]), i + 1 < n_ ? std::abs(e_[at(i)]) : 0.0});
        }
        for (std::int64_t i = 0; i < n_ && largest > 0; ++i) {
            d_[at(i)] = std::ldexp(d_[at(i)], -std::ilogb(largest));
            e_[at(i)] = std::ldexp(e_[at(i)], -std::ilogb(largest));
        }
    }

    void take_columns(std::int64_t level) {
        level_ = level;
        owners_.assign(at(n_), 0);
        const ColumnsOfRank columns = columns_of(level);
        for (int rank = 0; rank < team_.size(); ++rank) {
            const Range range = columns(rank);
            std::fill(owners_.begin() + range.begin, owners_.begin() + range.end, rank);
        }
    }

    void solve_leaves() {
        const std::int64_t level = std::ssize(levels_) - 1, count = std::ssize(parts(level)),
                           height = largest_of(parts(level));
        std::vector<int> solvers(at(n_));
        std::int64_t columns = 0;
        const auto solver = [&](std::int64_t leaf) { return static_cast<int>(leaf * team_.size() / count); };
        for (std::int64_t leaf = 0; leaf < count; ++leaf) {
            const Range part = parts(level)[at(leaf)];
            std::fill(solvers.begin() + part.begin, solvers.begin() + part.end, solver(leaf));
            columns += solver(leaf) == team_.rank() ? part.size() : 0;
        }
        Matrix found(height, columns);
        std::vector<double> values;
        for (std::int64_t leaf = 0; leaf < count; ++leaf) {
            if (solver(leaf) == team_.rank()) {
                solve_leaf(parts(level)[at(leaf)], found.column(std::ssize(values)), found.stride);
                const Range part = parts(level)[at(leaf)];
                values.insert(values.end(), d_.begin() + part.begin, d_.begin() + part.end);
            }
        }
        team_.gather(SpreadColumns{{values.data(), 1, columns, 1}, solvers}, 0, n_, 0, d_.data());
        const ColumnsOfRank wanted = columns_of(level);
        q_ = without_gaps(height, 0);
        q_.count = mine(level).size();
        q_.memory = Array<double>(team_.redistribute(SpreadColumns{found.columns(), solvers},
                                                     [&](int rank) { return grid::Block{{0, height}, wanted(rank)}; }));
        take_columns(level);
    }

    /// Its part of d_ becomes the values.
    void solve_leaf(const Range& part, double* vectors, std::int64_t stride) {
        const int n = lapack_int(part.size()), ld = lapack_int(stride), reals = lapack_int((part.size() + 4) * n + 1),
                  integers = 3 + 5 * n;
        const Array<double> work(reals);
        std::vector<int> more(at(integers));
        std::vector<double> beside(e_.begin() + part.begin, e_.begin() + part.end);
        int info = 0;
        tell<double>(effort::stedc(n));
        TILEWISE_BLAS(dstedc_)
        ("I", &n, d_.data() + part.begin, beside.data(), vectors, &ld, work.data(), &reals, more.data(), &integers,
         &info);
        check_lapack(info, "stedc");
    }

    /// Last rows of upper halves, first rows of lower ones, the latter with the sign of what is between them.
    std::vector<double> rows_that_meet() const {
        const Range columns = mine(level_);
        std::vector<double> own(at(columns.size())), all(at(n_));
        for (std::int64_t i = 0; i < std::ssize(parts(level_)); ++i) {
            const Range part = parts(level_)[at(i)], here = common(part, columns);
            for (std::int64_t c = here.begin; c < here.end; ++c) {
                const double* column = q_.column(c - columns.begin);
                own[at(c - columns.begin)] =
                    i % 2 == 0 ? column[part.size() - 1] : std::copysign(1.0, e_[at(part.begin - 1)]) * column[0];
            }
        }
        team_.gather(SpreadColumns{{own.data(), 1, columns.size(), 1}, owners_}, 0, n_, 0, all.data());
        return all;
    }

    void merge() {
        const Parts &halves = parts(level_), &wholes = parts(level_ - 1);
        const std::vector<double> z = rows_that_meet();
        std::vector<TridiagonalMerge> merges;
        std::vector<std::int64_t> ends{0};  // of the roots of each
        for (std::int64_t i = 0; i < std::ssize(wholes); ++i) {
            const Range whole = wholes[at(i)];
            const auto cut = [&](const std::vector<double>& all) {
                return std::vector<double>(all.begin() + whole.begin, all.begin() + whole.end);
            };
            merges.emplace_back(cut(d_), cut(z), std::abs(e_[at(halves[at(2 * i)].end - 1)]));
            ends.push_back(ends.back() + merges.back().roots());
        }
        const auto of_all = [&](std::int64_t index) {
            const auto end = std::upper_bound(ends.begin(), ends.end(), index);
            return std::pair{end - ends.begin() - 1, index - *(end - 1)};
        };
        const std::vector<double> roots = shared(ends.back(), 2, team_, [&](std::int64_t index, double* to) {
            const auto [which, number] = of_all(index);
            const Root root = merges[at(which)].root(number);
            to[0] = static_cast<double>(root.nearest);
            to[1] = root.beyond;
        });
        for (std::size_t i = 0; i < merges.size(); ++i) {
            std::vector<Root> mine_of;
            for (std::int64_t j = ends[i]; j < ends[i + 1]; ++j) {
                mine_of.push_back({static_cast<std::int64_t>(roots[at(2 * j)]), roots[at(2 * j + 1)]});
            }
            merges[i].take_roots(mine_of.data());
            std::copy(merges[i].values().begin(), merges[i].values().end(), d_.begin() + wholes[i].begin);
        }
        const std::vector<double> weights = shared(ends.back(), 1, team_, [&](std::int64_t index, double* to) {
            const auto [which, number] = of_all(index);
            *to = merges[at(which)].weight(number);
        });
        const std::int64_t height = largest_of(wholes);
        const Range columns = mine(level_ - 1);
        const Matrix s(height, columns.size());
        for (std::size_t i = 0; i < merges.size(); ++i) {
            merges[i].take_weights(weights.data() + ends[i]);
            const Range here = common(wholes[i], columns);
            for (std::int64_t c = here.begin; c < here.end; ++c) {
                merges[i].vector(c - wholes[i].begin, s.column(c - columns.begin));
            }
        }
        q_ = product(s);
        take_columns(level_ - 1);
    }

    /// The next level's columns: of both halves together, from this level's and what `s` takes of them.
    Matrix product(const Matrix& s) const {
        const Parts &halves = parts(level_), &wholes = parts(level_ - 1);
        const Range columns = mine(level_ - 1);
        Matrix next = without_gaps(s.rows, columns.size());
        const std::int64_t width = std::min(n_, gram_panel_columns * n_ / q_.rows);
        const Array<double> panel(width * q_.rows);
        for (std::int64_t begin = 0; begin < n_; begin += width) {
            const Range passing{begin, std::min(n_, begin + width)};
            team_.gather(spread(), passing.begin, passing.end, 0, panel.data());
            for (std::int64_t i = 0; i < std::ssize(halves); ++i) {
                const Range half = halves[at(i)], whole = wholes[at(i / 2)], of_half = common(half, passing),
                            of_mine = common(whole, columns);
                if (of_half.size() == 0 || of_mine.size() == 0) {
                    continue;
                }
                lapack::gemm(
                    "N", "N", lapack_int(half.size()), lapack_int(of_mine.size()), lapack_int(of_half.size()), 1.0,
                    panel.data() + (of_half.begin - begin) * q_.rows, lapack_int(q_.rows),
                    s.column(of_mine.begin - columns.begin) + of_half.begin - whole.begin, lapack_int(s.stride), 1.0,
                    next.column(of_mine.begin - columns.begin) + half.begin - whole.begin, lapack_int(next.stride));
            }
        }
        return next;
    }

    const ColumnComm& team_;
    const ColumnsOfRank& wanted_;
    std::int64_t n_;
    std::vector<double> d_, e_;
    std::vector<Parts> levels_;  ///< all of it, its halves, theirs, …
    std::int64_t level_ = 0;     ///< whose vectors there are in q_, and which rank has each
    Matrix q_;
    std::vector<int> owners_;
};

}  // namespace

Array<double> distributed_stedc(std::vector<double> diagonal, std::vector<double> beside, const ColumnsOfRank& wanted,
                                const ColumnComm& comm, int threads, std::int64_t leaf) {
    const BlasThreads blas(threads);
    return Divide(std::move(diagonal), std::move(beside), wanted, comm, leaf)();
}

}  // namespace tilewise::dist
