// Three ways to the same W: small angles (a few products), eigenvectors, and Jacobi on the Cholesky factor of the
// scaled Gram matrix.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/factor/jacobi.hpp"
#include "tilewise/kernel/factor/lapack.hpp"

namespace tilewise::kernel {
namespace {

// Where W = (I + E + E²/2)(I − E⁴/8) is orthogonal to rounding: its error is E⁸/43.
constexpr double largest_angles = 0.015;
// Below these, E⁵/8, E⁴/8 and E²/2 are less than rounding.
constexpr double no_fifth_order = 6e-4, no_fourth_order = 1e-4, no_second_order = 1e-8;
// The work space of LAPACK's eigenvectors is counted in 32 bits: 2·n².
constexpr std::size_t most_in_group = 30000;

/// The lower triangle of a square from the upper; `sign` −1 for a skew one, whose diagonal becomes 0.
template <class T> void reflect(T* square, std::int64_t count, double sign, int threads) {
    constexpr std::int64_t side = 32;
    const std::int64_t tiles = (count + side - 1) / side;
    parallel_tasks(count > 256 ? threads : 1, tiles, [&](std::int64_t tile, int) {
        for (std::int64_t other = 0; other <= tile; ++other) {
            for (std::int64_t c = tile * side; c < std::min(count, (tile + 1) * side); ++c) {
                for (std::int64_t r = other * side; r < std::min(c, (other + 1) * side); ++r) {
                    square[c + r * count] = sign * conjugate(square[r + c * count]);
                }
            }
        }
        for (std::int64_t c = tile * side; sign < 0 && c < std::min(count, (tile + 1) * side); ++c) {
            square[c * (count + 1)] = T{};
        }
    });
}

/// C = factor·AᴴA, whole.
template <class T> void squared(const T* a, std::int64_t count, double factor, T* c, int threads) {
    const int n = lapack_int(count);
    lapack::syrk(n, n, factor, a, n, c, n);
    reflect(c, count, 1, threads);
}

/// Before which of so many columns a cut leaves small angles only on its other side, those of all cuts together.
template <class Square> std::vector<bool> cuts_between(std::size_t count, const Square& square_of_angle) {
    // Squares of angles across a cut before each column; first their differences.
    std::vector<double> crossing(count + 1);
    for (std::size_t k = 1; k < count; ++k) {
        for (std::size_t other = 0; other < k; ++other) {
            const double square = square_of_angle(other, k);
            crossing[other + 1] += square;
            crossing[k + 1] -= square;
        }
    }
    std::partial_sum(crossing.begin(), crossing.end(), crossing.begin());
    std::vector<std::size_t> places(crossing.size());
    std::iota(places.begin(), places.end(), std::size_t{0});
    std::stable_sort(places.begin(), places.end(),
                     [&](std::size_t a, std::size_t b) { return crossing[a] < crossing[b]; });
    std::vector<bool> cuts(count + 1);
    double left = largest_angles * largest_angles / 2;
    for (const std::size_t place : places) {
        left -= crossing[place];
        if (left < 0) {
            break;
        }
        cuts[place] = true;
    }
    return cuts;
}

/// Where the group of descending norms ends that begins there: at a cut; or, where its range is more than
/// `eigen_ratio`, before the widest gap of the lower half of that range, so that columns of the same norm stay
/// together.
std::size_t end_of_group(const std::vector<double>& norms, std::size_t used, const std::vector<bool>& cuts,
                         std::size_t begin) {
    std::size_t end = begin + 1, cut = 0;
    while (end < used && !cuts[end] && end - begin < most_in_group && norms[begin] <= eigen_ratio * norms[end]) {
        ++end;
    }
    if (end == used || cuts[end]) {
        return end;
    }
    double widest = 0;
    for (std::size_t k = begin + 1; k <= end; ++k) {
        const double gap = norms[k - 1] / norms[k];
        if (norms[k] * std::sqrt(eigen_ratio) < norms[begin] && gap > widest) {
            widest = gap;
            cut = k;
        }
    }
    return widest > 0 ? cut : end;  // more columns of one norm than a group may have
}

}  // namespace

template <class T> T* InnerWork<T>::square(int index, std::int64_t count) {
    return squares_[index].grow(count * count);
}

template <class T> double* InnerWork<T>::reals(std::int64_t count) { return reals_.grow(count); }

template <class T> int* InnerWork<T>::integers(std::int64_t count) {
    integers_.resize(std::max(integers_.size(), static_cast<std::size_t>(count)));
    return integers_.data();
}

template <class T>
Angles find_angles(const Cosines<T>& cosines, double tolerance, T* e, int threads, const NormGroups* groups) {
    const std::int64_t count = cosines.count, strip = 64, strips = (count + strip - 1) / strip;
    std::vector<std::int64_t> ends(static_cast<std::size_t>(count));  // of the rows that each column has angles with
    std::iota(ends.begin(), ends.end(), 0);
    for (std::size_t group = 0; groups != nullptr && group < groups->begins.size(); ++group) {
        const std::size_t begin = groups->begins[group];
        std::fill_n(ends.begin() + static_cast<std::ptrdiff_t>(begin), groups->end_of(group) - begin,
                    static_cast<std::int64_t>(begin));
    }
    struct Sum {
        double off = 0, cosines = 0, scaled = 0;
    };
    std::vector<Sum> sums(static_cast<std::size_t>(strips));
    parallel_tasks(count > 256 ? threads : 1, strips, [&](std::int64_t task, int) {
        Sum& sum = sums[static_cast<std::size_t>(task)];
        const double *norms = cosines.norms.data(), *inverses = cosines.inverses.data();
        for (std::int64_t c = task * strip; c < std::min(count, (task + 1) * strip); ++c) {
            const T* cosine = cosines.column(c);
            T* angle = e + c * count;
            const double norm = norms[c], inverse = inverses[c];
            double off = 0, total = 0, scaled = 0;
            const std::int64_t rows = ends[static_cast<std::size_t>(c)];
            std::fill(angle + rows, angle + c, T{});
            for (std::int64_t r = 0; r < rows; ++r) {
                const T value = cosine[r];
                const double size = std::abs(value);
                const double up = norm * inverses[r], down = norms[r] * inverse;  // the ratio of norms and its inverse
                const T slope = 2.0 * value / (up - down);                        // tan 2θ; ±∞ or NaN for equal norms
                const double square = square_of(slope);
                const T theta = 0.5 * slope * (1 - square * (1.0 / 3 - 0.2 * square));
                const double ratio = std::max(up, down);
                const bool small = std::abs(slope) <= 2 * largest_angles;
                const bool none =
                    value == T{} || (size <= tolerance && !(std::abs(slope) * ratio <= 2 * largest_angles));
                const double size_of_angle = small ? std::abs(theta) * ratio : 1.0;
                angle[r] = none || !small ? T{} : theta;
                const double counted = none ? 0 : size_of_angle;
                off = std::max(off, size);
                total += size * size;
                scaled += counted * counted;
            }
            sum = {std::max(sum.off, off), sum.cosines + total, sum.scaled + scaled};
        }
    });
    Angles angles;
    for (const Sum& sum : sums) {
        angles.off = std::max(angles.off, sum.off);
        angles.cosines += sum.cosines;
        angles.scaled += sum.scaled;
    }
    angles.cosines = std::sqrt(angles.cosines);
    angles.scaled = std::sqrt(angles.scaled);
    angles.small = angles.scaled <= largest_angles;
    return angles;
}

template <class T> Rotation<T> small_rotation(InnerWork<T>& work, std::int64_t count, double size, int threads) {
    T *e = work.square(0, count), *half = work.square(1, count);
    reflect(e, count, -1, threads);
    const auto whole = [&](const T* w) { return Rotation<T>{w, {{0, count}}}; };
    if (size <= no_second_order) {
        return whole(e);
    }
    squared(e, count, -0.5, half, threads);  // E² = −EᴴE
    const std::int64_t elements = count * count;
    if (size <= no_fourth_order) {
        for (std::int64_t k = 0; k < elements; ++k) {
            half[k] += e[k];
        }
        return whole(half);
    }
    T* fourth = work.square(2, count);
    squared(half, count, -0.5, fourth, threads);  // −E⁴/8, from the square of E²/2
    for (std::int64_t k = 0; k < elements; ++k) {
        half[k] += e[k];
        e[k] = half[k] + fourth[k];
    }
    if (size > no_fifth_order) {
        const int n = lapack_int(count);
        lapack::gemm("N", "N", n, n, n, T{1}, half, n, fourth, n, T{1}, e, n);
    }
    return whole(e);
}

template <class T> NormGroups norm_groups(const Cosines<T>& cosines, double negligible) {
    NormGroups groups;
    groups.order.resize(static_cast<std::size_t>(cosines.count));
    std::iota(groups.order.begin(), groups.order.end(), 0);
    std::stable_sort(groups.order.begin(), groups.order.end(), [&](std::int64_t a, std::int64_t b) {
        return cosines.norms[static_cast<std::size_t>(a)] > cosines.norms[static_cast<std::size_t>(b)];
    });
    std::vector<double> norms;
    for (const std::int64_t column : groups.order) {
        norms.push_back(cosines.norms[static_cast<std::size_t>(column)]);
    }
    groups.used = static_cast<std::size_t>(std::find(norms.begin(), norms.end(), 0.0) - norms.begin());
    const auto cosine = [&](std::size_t left, std::size_t right) {
        const auto [row, column] = std::minmax(groups.order[left], groups.order[right]);
        return std::abs(cosines.column(column)[row]);
    };
    // Of a cosine that is negligible too: what turns one of two columns of equal norms makes more of it.
    const auto square_of_angle = [&](std::size_t left, std::size_t right) {
        const double ratio = norms[right] / norms[left];
        const double angle = std::min(1.0, std::max(cosine(left, right), negligible) / (1 - ratio * ratio));
        return angle * angle;
    };
    const std::vector<bool> cuts = cuts_between(groups.used, square_of_angle);
    for (std::size_t begin = 0; begin < groups.used;) {
        groups.begins.push_back(begin);
        begin = end_of_group(norms, groups.used, cuts, begin);
    }
    groups.rotated.assign(groups.begins.size(), false);
    double within = 0, across = 0;
    for (std::size_t group = 0; group < groups.begins.size(); ++group) {
        for (std::size_t k = groups.begins[group]; k < groups.end_of(group); ++k) {
            for (std::size_t other = 0; other < k; ++other) {
                if (other < groups.begins[group]) {
                    across += square_of_angle(other, k);
                } else if (cosine(other, k) > negligible) {
                    within += square_of_angle(other, k);
                    groups.rotated[group] = true;
                }
            }
        }
    }
    groups.small_within = std::sqrt(within) <= largest_angles;
    groups.small_across = std::sqrt(across) <= largest_angles;
    return groups;
}

template <class T>
Rotation<T> eigen_rotation(const Cosines<T>& cosines, const NormGroups& groups, InnerWork<T>& work) {
    const std::int64_t count = cosines.count;
    T *g = work.square(0, count), *w = work.square(1, count);
    Rotation<T> rotation{w, {}, groups.order};
    const auto leave = [&](std::size_t begin, std::size_t end) {
        for (auto c = static_cast<std::int64_t>(begin); c < static_cast<std::int64_t>(end); ++c) {
            w[c * (count + 1)] = 1.0;
            rotation.blocks.push_back({c, c + 1});
        }
    };
    for (std::size_t group = 0; group < groups.begins.size(); ++group) {
        const std::size_t begin = groups.begins[group], end = groups.end_of(group);
        if (!groups.rotated[group]) {
            leave(begin, end);
            continue;
        }
        const std::int64_t width = static_cast<std::int64_t>(end - begin);
        const std::int64_t* order = groups.order.data() + begin;
        const auto norm = [&](std::int64_t k) {
            return cosines.norms[static_cast<std::size_t>(order[k])] /
                   cosines.norms[static_cast<std::size_t>(order[0])];
        };
        for (std::int64_t c = 0; c < width; ++c) {
            for (std::int64_t r = 0; r <= c; ++r) {
                const T cosine = r == c ? cosines.column(order[c])[order[c]] : cosines.between(order[r], order[c]);
                g[r + c * width] = cosine * norm(r) * norm(c);
            }
        }
        const int n = lapack_int(width);
        double* values = work.reals(width + lapack::syevd_reals<T>(width));
        check_lapack(lapack::syevd(n, g, values, values + width, work.integers(lapack::syevd_integers(n))), "syevd");
        const auto first = static_cast<std::int64_t>(begin);
        for (std::int64_t c = 0; c < width; ++c) {
            std::copy_n(g + (width - 1 - c) * width, width, w + (first + c) * count + first);
        }
        rotation.blocks.push_back({first, first + width});
    }
    leave(groups.used, static_cast<std::size_t>(count));
    return rotation;
}

template <class T>
Rotation<T> cholesky_rotation(const Cosines<T>& cosines, const NormGroups& groups, InnerWork<T>& work) {
    const std::int64_t count = cosines.count;
    const std::int64_t used = static_cast<std::int64_t>(groups.used);
    const auto at = [&](std::int64_t index) { return groups.order[static_cast<std::size_t>(index)]; };
    const auto norm = [&](std::int64_t c) { return cosines.norms[static_cast<std::size_t>(c)]; };
    T *r = work.square(0, count), *w = work.square(1, count), *v = work.square(2, count);
    const int n = lapack_int(used);
    // Rounding leaves the cosines' matrix indefinite by some w·ε where columns are nearly dependent: that much is
    // added.
    double ridge = 0;
    for (int info = 1; info != 0;) {
        for (std::int64_t c = 0; c < used; ++c) {
            for (std::int64_t k = 0; k < c; ++k) {
                r[k + c * used] = cosines.between(at(k), at(c));
                r[c + k * used] = T{};
            }
            r[c * (used + 1)] = 1 + ridge;
        }
        info = lapack::potrf(n, r, n);
        ridge = std::max(2 * ridge, static_cast<double>(used) * std::numeric_limits<double>::epsilon());
        if (info < 0 || ridge > 1) {
            check_lapack(info < 0 ? info : 1, "potrf");
        }
    }
    for (std::int64_t c = 0; c < used; ++c) {
        const double scale = norm(at(c)) / norm(at(0));
        for (std::int64_t k = 0; k <= c; ++k) {
            r[k + c * used] *= scale;
        }
    }
    double* values = work.reals(count + parts_of<T> * (4 * used + 20));
    const int info = lapack::gesvj(n, r, values, v, reinterpret_cast<T*>(values + count));
    check_lapack(std::min(info, 0), "gesvj");  // a positive value: not converged, which the next sweep makes good
    Rotation<T> rotation{w, {{0, used}}, groups.order};
    for (std::int64_t c = 0; c < used; ++c) {
        std::copy_n(v + c * used, used, w + c * count);
    }
    for (std::int64_t rest = used; rest < count; ++rest) {
        w[rest * (count + 1)] = 1.0;
        rotation.blocks.push_back({rest, rest + 1});
    }
    return rotation;
}

TILEWISE_INNER(, double)
TILEWISE_INNER(, Complex)

}  // namespace tilewise::kernel
