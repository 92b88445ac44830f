// Tests of stencil sweeps: the plain version against loops written here, the fast one against the plain one bit by bit.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <limits>
#include <string>
#include <vector>

#include "tilewise/base/error.hpp"
#include "tilewise/base/random.hpp"
#include "tilewise/kernel/isa/backend.hpp"
#include "tilewise/kernel/sweep/sweep.hpp"

using namespace tilewise;
using namespace tilewise::kernel;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// A reproducible stream of choices.
struct Dice {
    std::uint64_t state;
    std::int64_t roll(std::int64_t low, std::int64_t high) {
        return low + static_cast<std::int64_t>(mix(state++) % static_cast<std::uint64_t>(high - low + 1));
    }
    double number() { return uniform(mix(state++)) - 0.5; }
};

/// Memory that ends where the shape says, so that a sanitizer sees what reads beyond it, and starts anywhere.
template <class T> struct Cells {
    mutable std::vector<T> cells;
    std::byte* data() const { return reinterpret_cast<std::byte*>(cells.data()); }
};

template <class T> struct Field {
    FieldShape shape;
    Cells<T> memory;

    Field(std::int64_t rows, std::int64_t columns, std::int64_t margin, double fill = nan)
        : shape(field_shape(rows, columns, margin, sizeof(T) == 4 ? Dtype::float32 : Dtype::float64)),
          memory{std::vector<T>(static_cast<std::size_t>(shape.elements), static_cast<T>(fill))} {}
    T& at(std::int64_t i, std::int64_t j) const {
        return memory.cells[static_cast<std::size_t>(shape.origin + i * shape.pitch + j)];
    }
    void randomize(std::uint64_t seed) const {
        for (std::int64_t i = 0; i < shape.rows; ++i) {
            for (std::int64_t j = 0; j < shape.columns; ++j) {
                at(i, j) = static_cast<T>(
                    uniform(random_bits(row_key(seed, static_cast<std::uint64_t>(i)), static_cast<std::uint64_t>(j))));
            }
        }
    }
    Part whole() const { return {0, shape.rows, 0, shape.columns}; }
};

template <class T> constexpr Dtype dtype_of = sizeof(T) == 4 ? Dtype::float32 : Dtype::float64;

Weights make_weights(Dice& dice, int radius, SumForm form) {
    const int side = 2 * radius + 1;
    Weights weights{.radius = radius, .values = std::vector<double>(static_cast<std::size_t>(side * side))};
    const auto w = [&](int dy, int dx) -> double& {
        return weights.values[static_cast<std::size_t>((dy + radius) * side + dx + radius)];
    };
    const bool star = form == SumForm::star || form == SumForm::star_symmetric;
    const bool symmetric = form == SumForm::star_symmetric || form == SumForm::box_symmetric;
    for (int dy = -radius; dy <= radius; ++dy) {
        for (int dx = -radius; dx <= radius; ++dx) {
            if (!star || dy == 0 || dx == 0) {
                w(dy, dx) = (dice.number() + 0.6) / static_cast<double>(star ? 4 * radius + 1 : side * side);
            }
        }
    }
    for (int dy = 0; symmetric && dy <= radius; ++dy) {
        for (int dx = 0; dx <= radius; ++dx) {
            w(-dy, dx) = w(dy, -dx) = w(-dy, -dx) = w(dy, dx);
        }
    }
    return weights;
}

std::vector<const SweepSet*> sweep_sets() {
    std::vector<const SweepSet*> sets;
    for (const KnownBackend& row : backends()) {
        if (row.supported()) {
            sets.push_back(&row.set.sweep);
        }
    }
    return sets;
}

constexpr SumForm forms[] = {SumForm::star_symmetric, SumForm::star, SumForm::box_symmetric, SumForm::box};
constexpr Boundary boundaries[] = {Boundary::zero,   Boundary::fixed,   Boundary::periodic,         Boundary::reflect,
                                   Boundary::mirror, Boundary::nearest, {Boundary::constant, -1.75}};

/// The sweeps as one would write them down, in float64, without margins.
std::vector<double> written_down(const Weights& weights, Boundary boundary, std::vector<double> cells,
                                 std::int64_t rows, std::int64_t columns, int steps) {
    const int r = weights.radius;
    const auto source = [&](std::int64_t i, std::int64_t n) {
        while (i < 0 || i >= n) {
            if (boundary == Boundary::reflect) {
                i = i < 0 ? -1 - i : 2 * n - 1 - i;
            } else if (boundary == Boundary::mirror && n > 1) {
                i = i < 0 ? -i : 2 * (n - 1) - i;
            } else if (boundary == Boundary::periodic) {
                i += i < 0 ? n : -n;
            } else {
                i += i < 0 ? 1 : -1;
            }
        }
        return i;
    };
    for (int step = 0; step < steps; ++step) {
        std::vector<double> next = cells;
        for (std::int64_t i = 0; i < rows; ++i) {
            for (std::int64_t j = 0; j < columns; ++j) {
                double sum = 0;
                bool inside = true;
                for (int dy = -r; dy <= r; ++dy) {
                    for (int dx = -r; dx <= r; ++dx) {
                        std::int64_t y = i + dy, x = j + dx;
                        const bool here = y >= 0 && y < rows && x >= 0 && x < columns;
                        inside = inside && here;
                        y = source(y, rows);
                        x = source(x, columns);
                        sum +=
                            weights.values[static_cast<std::size_t>((dy + r) * (2 * r + 1) + dx + r)] *
                            (here || boundary != Boundary::constant ? cells[static_cast<std::size_t>(y * columns + x)]
                                                                    : boundary.value);
                    }
                }
                if (boundary != Boundary::fixed || inside) {
                    next[static_cast<std::size_t>(i * columns + j)] = sum;
                }
            }
        }
        cells = next;
    }
    return cells;
}

/// Fills a block's margin from the whole matrix, which the block's cell (0, 0) is (row, column) of; what no sweep may
/// use stays garbage.
template <class T> void fill_block(const Field<T>& block, const Field<T>& whole, std::int64_t row, std::int64_t column,
                                   bool wraps) {
    const std::int64_t n = whole.shape.rows, m = whole.shape.columns, margin = block.shape.margin;
    for (std::int64_t i = -margin; i < block.shape.rows + margin; ++i) {
        for (std::int64_t j = -margin; j < block.shape.columns + margin; ++j) {
            const std::int64_t y = row + i, x = column + j;
            if (wraps) {
                block.at(i, j) = whole.at((y % n + n) % n, (x % m + m) % m);
            } else if (y >= 0 && y < n && x >= 0 && x < m) {
                block.at(i, j) = whole.at(y, x);
            }
        }
    }
}

template <class T> bool same_bits(const Field<T>& a, const Field<T>& b) {
    for (std::int64_t i = 0; i < a.shape.rows; ++i) {
        if (std::memcmp(&a.at(i, 0), &b.at(i, 0), static_cast<std::size_t>(a.shape.columns) * sizeof(T)) != 0) {
            return false;
        }
    }
    return true;
}

Edges edges_for(Boundary boundary) {
    const bool is_edge = boundary != Boundary::periodic;
    return {is_edge, is_edge, is_edge, is_edge};
}

/// A whole matrix with its margin as the boundary wants it, and NaN where nothing may be read.
template <class T> Field<T> whole_matrix(std::int64_t rows, std::int64_t columns, std::int64_t margin,
                                         Boundary boundary, std::uint64_t seed) {
    Field<T> whole(rows, columns, margin);
    whole.randomize(seed);
    if (boundary == Boundary::periodic) {
        Field<T> copy(rows, columns, 0);
        copy.randomize(seed);
        fill_block(whole, copy, 0, 0, true);
    }
    return whole;
}

template <class T> void check_plain(Dice& dice) {
    for (int radius = 1; radius <= 4; ++radius) {
        for (const SumForm form : forms) {
            for (const Boundary boundary : boundaries) {
                const std::int64_t rows = dice.roll(1, 13), columns = dice.roll(1, 17);
                const int steps = static_cast<int>(dice.roll(1, 4));
                const Weights weights = make_weights(dice, radius, form);
                Sweeper sweeper(weights, boundary, dtype_of<T>, true);
                CHECK(sweeper.form() == form);
                const Field<T> from =
                    whole_matrix<T>(rows, columns, std::int64_t{steps} * radius, boundary, dice.state);
                const Field<T> to(rows, columns, std::int64_t{steps} * radius);
                sweeper.sweep(from.shape, edges_for(boundary), from.memory.data(), to.memory.data(), from.whole(),
                              steps, 2);
                std::vector<double> cells;
                for (std::int64_t k = 0; k < rows * columns; ++k) {
                    cells.push_back(from.at(k / columns, k % columns));
                }
                cells = written_down(weights, boundary, cells, rows, columns, steps);
                double worst = 0;
                for (std::int64_t k = 0; k < rows * columns; ++k) {
                    const double difference = std::abs(cells[static_cast<std::size_t>(k)] -
                                                       static_cast<double>(to.at(k / columns, k % columns)));
                    worst = difference <= worst ? worst : difference;  // NaN too
                }
                INFO("radius " << radius << " boundary " << static_cast<int>(boundary) << " " << rows << "x"
                               << columns);
                CHECK(worst <= (sizeof(T) == 4 ? 1e-6 : 1e-14));
            }
        }
    }
}

/// Cuts a matrix into blocks and sweeps each with its edges and margins, and with parts; all must give the plain sweep
/// of the whole.
template <class T> void check_fast(Dice& dice, const SweepSet* set, std::int64_t most_rows, std::int64_t most_columns,
                                   int most_steps) {
    const int radius = static_cast<int>(dice.roll(1, 4)), steps = static_cast<int>(dice.roll(1, most_steps));
    const SumForm form = forms[dice.roll(0, 3)];
    const Boundary boundary = boundaries[dice.roll(0, 6)];
    const std::int64_t rows = dice.roll(1, most_rows), columns = dice.roll(1, most_columns);
    const std::int64_t margin = std::int64_t{steps} * radius + std::max<std::int64_t>(0, dice.roll(-9, 9));  // or more
    const int threads = static_cast<int>(dice.roll(1, 3));
    const Weights weights = make_weights(dice, radius, form);
    const std::uint64_t seed = dice.state;
    Sweeper plain(weights, boundary, dtype_of<T>, true, set), fast(weights, boundary, dtype_of<T>, false, set);
    INFO("width " << set->width << " item " << sizeof(T) << " radius " << radius << " form " << static_cast<int>(form)
                  << " boundary " << static_cast<int>(boundary) << " " << rows << "x" << columns << " steps " << steps
                  << " threads " << threads);
    const Field<T> from = whole_matrix<T>(rows, columns, margin, boundary, seed);
    const Field<T> expected(rows, columns, margin), whole(rows, columns, margin), cut(rows, columns, margin);
    plain.sweep(from.shape, edges_for(boundary), from.memory.data(), expected.memory.data(), from.whole(), steps,
                threads);
    fast.sweep(from.shape, edges_for(boundary), from.memory.data(), whole.memory.data(), from.whole(), steps, threads);
    CHECK(same_bits(expected, whole));

    const bool wraps = boundary == Boundary::periodic;
    if (!wraps) {  // with edges all around nobody needs a margin
        const Field<T> bare = whole_matrix<T>(rows, columns, 0, boundary, seed), swept(rows, columns, 0);
        fast.sweep(bare.shape, {}, bare.memory.data(), swept.memory.data(), bare.whole(), steps, threads);
        CHECK(same_bits(expected, swept));
    }
    const auto blocks = [&](std::int64_t cells) {  // a margin reaches no further than the next block
        return dice.roll(1, std::clamp<std::int64_t>(cells / (wraps ? 1 : margin), 1, 4));
    };
    const std::int64_t down = blocks(rows), across = blocks(columns);
    for (std::int64_t p = 0; p < down; ++p) {
        for (std::int64_t q = 0; q < across; ++q) {
            const std::int64_t top = rows * p / down, bottom = rows * (p + 1) / down;
            const std::int64_t left = columns * q / across, right = columns * (q + 1) / across;
            const Field<T> block(bottom - top, right - left, margin), result(bottom - top, right - left, margin);
            fill_block(block, from, top, left, wraps);
            const Edges edges{!wraps && p == 0, !wraps && p == down - 1, !wraps && q == 0, !wraps && q == across - 1};
            const std::int64_t y = dice.roll(0, bottom - top), x = dice.roll(0, right - left);
            Sweeper& sweeper = dice.roll(0, 3) == 0 ? plain : fast;
            for (const Part& part : {Part{0, y, 0, x}, Part{0, y, x, right - left}, Part{y, bottom - top, 0, x},
                                     Part{y, bottom - top, x, right - left}}) {
                sweeper.sweep(block.shape, edges, block.memory.data(), result.memory.data(), part, steps, threads);
            }
            for (std::int64_t i = top; i < bottom; ++i) {
                std::copy_n(&result.at(i - top, 0), right - left, &cut.at(i, left));
            }
            bool untouched = true;
            for (std::int64_t i = -margin; i < bottom - top + margin; ++i) {
                for (std::int64_t j = -margin; j < right - left + margin; ++j) {
                    const bool own = i >= 0 && i < bottom - top && j >= 0 && j < right - left;
                    untouched = untouched && (own || std::isnan(result.at(i, j)));
                }
            }
            CHECK(untouched);
        }
    }
    CHECK(same_bits(expected, cut));
}

}  // namespace

TEST_CASE("one sweep of a small matrix, by hand") {
    const Weights star5{.radius = 1, .values = {0, 1, 0, 2, 10, 3, 0, 4, 0}};
    const auto sweep = [&](Boundary boundary) {
        Field<float> from(2, 3, 1), to(2, 3, 1);
        for (int k = 0; k < 6; ++k) {
            from.at(k / 3, k % 3) = static_cast<float>(k + 1);  // 1 2 3 | 4 5 6
        }
        if (boundary == Boundary::periodic) {
            Field<float> copy(2, 3, 0);
            std::copy_n(&from.at(0, 0), 3, &copy.at(0, 0));
            std::copy_n(&from.at(1, 0), 3, &copy.at(1, 0));
            fill_block(from, copy, 0, 0, true);
        }
        Sweeper(star5, boundary, Dtype::float32, true)
            .sweep(from.shape, edges_for(boundary), from.memory.data(), to.memory.data(), from.whole(), 1, 1);
        std::vector<float> cells;
        for (int k = 0; k < 6; ++k) {
            cells.push_back(to.at(k / 3, k % 3));
        }
        return cells;
    };
    CHECK(sweep(Boundary::zero) == std::vector<float>{10 + 6 + 16, 20 + 2 + 9 + 20, 30 + 4 + 24,  //
                                                      1 + 40 + 15, 2 + 8 + 50 + 18, 3 + 10 + 60});
    CHECK(sweep(Boundary::fixed) == std::vector<float>{1, 2, 3, 4, 5, 6});
    CHECK(sweep(Boundary::periodic) ==
          std::vector<float>{4 + 6 + 10 + 6 + 16, 5 + 2 + 20 + 9 + 20, 6 + 4 + 30 + 3 + 24,  //
                             1 + 12 + 40 + 15 + 4, 2 + 8 + 50 + 18 + 8, 3 + 10 + 60 + 12 + 12});
    CHECK(sweep(Boundary::reflect) ==
          std::vector<float>{1 + 2 + 10 + 6 + 16, 2 + 2 + 20 + 9 + 20, 3 + 4 + 30 + 9 + 24,  //
                             1 + 8 + 40 + 15 + 16, 2 + 8 + 50 + 18 + 20, 3 + 10 + 60 + 18 + 24});
}

TEST_CASE("plain sweeps against loops in float64") {
    Dice dice{1};
    for (int round = 0; round < 4; ++round) {
        check_plain<float>(dice);
        check_plain<double>(dice);
    }
}

TEST_CASE("fast sweeps give the plain ones' bits, however a matrix is cut") {
    for (const SweepSet* set : sweep_sets()) {
        Dice dice{static_cast<std::uint64_t>(set->width)};
        for (int round = 0; round < 250; ++round) {
            check_fast<float>(dice, set, 40, 60, 9);
            check_fast<double>(dice, set, 40, 60, 9);
        }
        for (int round = 0; round < 12; ++round) {
            check_fast<float>(dice, set, 150, 900, 40);
            check_fast<double>(dice, set, 150, 500, 40);
        }
    }
}

TEST_CASE("degenerate shapes") {
    for (const SweepSet* set : sweep_sets()) {
        Dice dice{7};
        for (int round = 0; round < 60; ++round) {
            check_fast<float>(dice, set, 1, 1, 12);
            check_fast<float>(dice, set, 1, 300, 12);
            check_fast<double>(dice, set, 300, 1, 12);
            check_fast<float>(dice, set, 5, 5, 40);
        }
    }
}

TEST_CASE("a field that is larger than caches goes past them, with the same bits") {
    Dice dice{3};
    for (const SweepSet* set : sweep_sets()) {
        const Weights weights = make_weights(dice, 1, forms[dice.roll(0, 3)]);
        const Field<float> from = whole_matrix<float>(1501, 1499, 0, Boundary::reflect, dice.state);
        const Field<float> expected(1501, 1499, 0), to(1501, 1499, 0);
        for (const bool plain : {true, false}) {
            Sweeper(weights, Boundary::reflect, Dtype::float32, plain, set)
                .sweep(from.shape, {}, from.memory.data(), (plain ? expected : to).memory.data(), from.whole(), 5, 2);
        }
        CHECK(same_bits(expected, to));
    }
}

TEST_CASE("what a sweep refuses") {
    const Weights star5{.radius = 1, .values = {0, 1, 0, 1, 6, 1, 0, 1, 0}};
    CHECK_THROWS_WITH_AS(Sweeper(star5, Boundary::zero, Dtype::float16, false),
                         "a stencil cannot be computed in float16; it must be float32 or float64", UsageError);
    CHECK_THROWS_AS(Sweeper({.radius = 5, .values = std::vector<double>(121)}, Boundary::zero, Dtype::float32, false),
                    UsageError);
    CHECK_THROWS_AS(Sweeper({.radius = 2, .values = std::vector<double>(9)}, Boundary::zero, Dtype::float32, false),
                    UsageError);
    const Field<float> from(9, 9, 3), to(9, 9, 3);
    Sweeper sweeper(star5, Boundary::zero, Dtype::float32, false);
    CHECK_THROWS_WITH_AS(
        sweeper.sweep(from.shape, {.left = false}, from.memory.data(), to.memory.data(), from.whole(), 4, 1),
        "4 sweeps of radius 1 need 4 cells around the result; the margin has 3", UsageError);
    sweeper.sweep(from.shape, {.left = false}, from.memory.data(), to.memory.data(), {0, 9, 1, 9}, 4, 1);
}

TEST_CASE("a pass reads what its strips reach around their cells, and writes their cells") {
    const Weights star5{.radius = 1, .values = {0, 0.1, 0, 0.1, 0.6, 0.1, 0, 0.1, 0}};
    Sweeper sweeper(star5, Boundary::zero, Dtype::float32, false), plain(star5, Boundary::zero, Dtype::float32, true);
    const Field<float> from(20, 1800, 3), to(20, 1800, 3);
    from.randomize(1);
    const auto bytes = [&](Sweeper& with, Edges edges, const Part& part, int steps) {
        return with.sweep(from.shape, edges, from.memory.data(), to.memory.data(), part, steps, 1);
    };
    const Part narrow{0, 20, 0, 100};
    CHECK(bytes(sweeper, {}, narrow, 1) == 4 * (20 * 101 + 20 * 100));
    CHECK(bytes(sweeper, {}, narrow, 3) == 4 * (20 * 103 + 20 * 100));
    CHECK(bytes(sweeper, {.top = false}, narrow, 3) == 4 * (23 * 103 + 20 * 100));
    CHECK(bytes(sweeper, {}, from.whole(), 3) == 4 * (20 * (1800 + 2 * 6) + 20 * 1800));  // three strips
    CHECK(bytes(plain, {}, narrow, 3) == 3 * bytes(plain, {}, narrow, 1));
    CHECK(bytes(sweeper, {}, narrow, 0) == 4 * 2 * 20 * 100);
    CHECK(bytes(sweeper, {}, {0, 0, 0, 100}, 3) == 0);
}
