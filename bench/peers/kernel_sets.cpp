// Times every kernel of the instruction set in use beside what bounds it, and beside a peer where there is one.
//
//     kernel_sets                 the sets that this processor has, the best first
//     kernel_sets ROUNDS [PART]   each kernel whose name contains PART, as a line of JSON:
//                                 {"kernel": …, "unit": …, "set": …, "rates": [one a round], "bound": …, "bounds": […],
//                                  "peer": …, "peers": […]}
//
// TILEWISE_KERNELS names the set. All is done by one thread, but for what says otherwise. A kernel, its bound and its
// peer take turns. Bounds are loops of the same set: multiply-adds in registers, memory read, copied or written.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/random.hpp"
#include "tilewise/kernel/codec/checksum.hpp"
#include "tilewise/kernel/codec/convert.hpp"
#include "tilewise/kernel/codec/unpack.hpp"
#include "tilewise/kernel/factor/lapack.hpp"
#include "tilewise/kernel/factor/two_stage.hpp"
#include "tilewise/kernel/fill.hpp"
#include "tilewise/kernel/isa/registers.hpp"
#include "tilewise/kernel/isa/versions.hpp"
#include "tilewise/kernel/product/apply.hpp"
#include "tilewise/kernel/product/few_vectors.hpp"
#include "tilewise/kernel/product/gemm.hpp"
#include "tilewise/kernel/sweep/sweep.hpp"
#include "tilewise/kernel/text/text.hpp"
#include "tilewise/kernel/transpose/transpose.hpp"

namespace {

using namespace tilewise;
using namespace tilewise::kernel;
using Work = std::function<void()>;
using Clock = std::chrono::steady_clock;

/// Work and how much of it there is, in the unit of its case.
struct Side {
    double amount = 0;
    Work work{};
    std::string name{};
    bool has_threads = false;  ///< which spin for a while and would disturb who comes next
};

int rounds = 0;
std::string wanted;

/// Units a second, of as many calls as take a hundredth of a second.
double rate(const Side& side) {
    for (int calls = 1;; calls *= 2) {
        const auto begin = Clock::now();
        for (int i = 0; i < calls; ++i) {
            side.work();
        }
        const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
        if (seconds > 0.01) {
            return side.amount * calls / seconds;
        }
    }
}

void say_side(const char* name, const Side& side, const char* list, const std::vector<double>& rates) {
    if (side.work) {
        std::cout << ", \"" << name << "\": \"" << side.name << "\", \"" << list << "\": [";
        for (std::size_t i = 0; i < rates.size(); ++i) {
            std::cout << (i > 0 ? ", " : "") << rates[i];
        }
        std::cout << ']';
    }
}

void measure(const std::string& kernel, const char* unit, const Side& ours, const Side& bound, const Side& peer = {}) {
    if (kernel.find(wanted) == std::string::npos) {
        return;
    }
    std::vector<double> rates[3];
    const Side* sides[] = {&ours, &bound, &peer};
    for (int round = 0; round <= rounds; ++round) {
        for (int i = 0; i < 3; ++i) {
            if (const int side = round % 2 == 0 ? i : 2 - i; sides[side]->work) {
                const double now = rate(*sides[side]);
                if (sides[side]->has_threads) {
                    std::this_thread::sleep_for(std::chrono::milliseconds(200));
                }
                if (round > 0) {  // the first warms up
                    rates[side].push_back(now);
                }
            }
        }
    }
    std::cout << "{\"kernel\": \"" << kernel << "\", \"unit\": \"" << unit << '"';
    say_side("set", {1, ours.work, std::string(backend().name)}, "rates", rates[0]);
    say_side("bound", bound, "bounds", rates[1]);
    say_side("peer", peer, "peers", rates[2]);
    std::cout << '}' << std::endl;
}

// What bounds kernels.

volatile double kept;

template <class T, std::size_t width> using V = typename Vector<T, width>::type;

/// In registers, as often as `turns`: additions, and products that are added, in the proportion of a kernel's.
template <class T, std::size_t width, int sums, int products> TILEWISE_INLINE void arithmetic(std::int64_t turns) {
    V<T, width> s[12], b = V<T, width>{} + T(0.5), c = V<T, width>{} + T(1);
    for (int i = 0; i < 12; ++i) {
        s[i] = V<T, width>{} + T(i);
    }
    for (std::int64_t turn = 0; turn < turns; ++turn) {
#pragma GCC unroll 4
        for (int k = 0; k < products; ++k) {
#pragma GCC unroll 12
            for (int i = 0; i < 12; ++i) {
                s[i] = s[i] * b + c;
            }
        }
#pragma GCC unroll 4
        for (int k = 0; k < sums; ++k) {
#pragma GCC unroll 12
            for (int i = 0; i < 12; ++i) {
                s[i] += c;
            }
        }
    }
    V<T, width> sum = s[0];
    for (int i = 1; i < 12; ++i) {
        sum += s[i];
    }
    kept = static_cast<double>(sum[0]);
}

/// `each`: what a register's number in a turn counts for.
template <class T, int sums, int products> Side computing(double each) {
    constexpr std::int64_t turns = 20000;
    const double numbers = static_cast<double>(backend().width) / sizeof(T) * 12 * turns;
    return {each * numbers,
            [] {
                in_widths<arithmetic<T, 16, sums, products>, arithmetic<T, 32, sums, products>,
                          arithmetic<T, 64, sums, products>>(turns);
            },
            sums == 0 ? "multiply-adds in registers" : "the same additions and multiplications in registers"};
}
template <class T> Side multiply_adds() { return computing<T, 0, 1>(2); }

template <std::size_t width> TILEWISE_INLINE void read_all(const std::byte* data, std::int64_t bytes) {
    using U = typename Vector<std::uint64_t, width>::loose;
    U sum[4] = {};
    constexpr std::int64_t step = 4 * width;
    for (std::int64_t at = 0; at + step <= bytes; at += step) {
        for (std::size_t k = 0; k < 4; ++k) {
            sum[k] += *reinterpret_cast<const U*>(data + at + static_cast<std::int64_t>(k * width));
        }
    }
    kept = static_cast<double>((sum[0] + sum[1] + sum[2] + sum[3])[0]);
}

Side reading(const Buffer& buffer) {
    const auto bytes = static_cast<std::int64_t>(buffer.bytes());
    return {static_cast<double>(bytes),
            [&buffer, bytes] { in_widths<read_all<16>, read_all<32>, read_all<64>>(buffer.data(), bytes); },
            "memory read"};
}

Side copying(const Buffer& from, const Buffer& to, std::size_t bytes) {
    return {static_cast<double>(bytes), [&from, &to, bytes] { std::memcpy(to.data(), from.data(), bytes); },
            "the larger side copied"};
}

/// A block of the second-level cache summed up with factors, then added to: what a reflection does to it.
template <std::size_t width> TILEWISE_INLINE void reflect_block(double* block, std::int64_t count) {
    using D = typename Vector<double, width>::loose;
    constexpr auto lanes = static_cast<std::int64_t>(width / 8);
    D sum[4] = {};
    for (std::int64_t i = 0; i < count; i += 4 * lanes) {
        for (int k = 0; k < 4; ++k) {
            sum[k] += *reinterpret_cast<D*>(block + i + k * lanes) * 0.5;
        }
    }
    const D added = (sum[0] + sum[1] + sum[2] + sum[3]) * 1e-30;
    for (std::int64_t i = 0; i < count; i += lanes) {
        *reinterpret_cast<D*>(block + i) += added;
    }
}

void random_numbers(const Buffer& buffer, Dtype dtype) {
    const auto count = static_cast<std::int64_t>(buffer.bytes() / size_of(dtype));
    fill(buffer.data(), {{0, 1}, {0, count}}, count, dtype, Fill::random, 1, 2);
}

template <class T> constexpr Dtype dtype_of = std::is_same_v<T, float> ? Dtype::float32 : Dtype::float64;
template <class T> std::string type() { return std::string(name_of(dtype_of<T>)) + " "; }

// Products.

/// C = A·B of BLAS with its own threads, row by row.
template <class T> void blas(int m, int n, int k, const T* a, const T* b, T* c, int threads) {
    const T one(1), zero(0);
    TILEWISE_BLAS(openblas_set_num_threads)(threads);
    if constexpr (std::is_same_v<T, float>) {
        TILEWISE_BLAS(sgemm_)("N", "N", &n, &m, &k, &one, b, &n, a, &k, &zero, c, &n);
    } else {
        TILEWISE_BLAS(dgemm_)("N", "N", &n, &m, &k, &one, b, &n, a, &k, &zero, c, &n);
    }
}

template <class T> void products() {
    for (const int n : {256, 512, 1024, 2048}) {
        const Buffer a(static_cast<std::size_t>(n * n) * sizeof(T)), b(a.bytes()), c(a.bytes());
        random_numbers(a, dtype_of<T>);
        random_numbers(b, dtype_of<T>);
        const Product product{dtype_of<T>, n, n, n, {a.data(), n}, {b.data(), n}, c.data(), n};
        const double amount = operations(product);
        const auto by_blas = [&](int threads) {
            return Side{amount,
                        [&, threads] {
                            blas(n, n, n, reinterpret_cast<const T*>(a.data()), reinterpret_cast<const T*>(b.data()),
                                 reinterpret_cast<T*>(c.data()), threads);
                        },
                        "BLAS", threads > 1};
        };
        const std::string what = type<T>() + std::to_string(n) + "²";
        measure("product by tiles, " + what, "operations", {amount, [&] { gemm(product, 1, Kernel::tiles); }},
                multiply_adds<T>(), by_blas(1));
        measure("product as chosen, " + what, "operations", {amount, [&] { gemm(product, 1); }}, {}, by_blas(1));
        measure("product on two threads, " + what, "operations", {amount, [&] { gemm(product, 2); }}, {}, by_blas(2));
        if (n < 1024) {
            continue;
        }
        Product transposed = product;
        transposed.b = {a.data(), n, true};
        const grid::Block all{{0, n}, {0, n}};
        const std::vector<grid::Block> parts{
            {{0, n / 2}, {0, n / 2}}, {{n / 2, n}, {n / 2, n}}, {{0, n / 2}, {n / 2, n}}};
        measure("A·Aᵀ, " + what, "operations", {amount / 2, [&] { gemm_parts(transposed, all, parts, 1); }},
                multiply_adds<T>(),
                {amount / 2,
                 [&] {
                     const int side = n;
                     const T one(1), zero(0);
                     TILEWISE_BLAS(openblas_set_num_threads)(1);
                     if constexpr (std::is_same_v<T, float>) {
                         TILEWISE_BLAS(ssyrk_)("L", "T", &side, &side, &one, a.data(), &side, &zero, c.data(), &side);
                     } else {
                         TILEWISE_BLAS(dsyrk_)("L", "T", &side, &side, &one, a.data(), &side, &zero, c.data(), &side);
                     }
                 },
                 "BLAS"});
        if (n == 2048) {
            measure("Strassen's product, one level, " + what, "operations", {amount, [&] { strassen(product, 1, 1); }},
                    {}, by_blas(1));
        }
    }
    const int large = 3000;
    const Buffer a(static_cast<std::size_t>(large * large) * sizeof(T)), b(static_cast<std::size_t>(large) * 64),
        c(b.bytes());
    random_numbers(a, dtype_of<T>);
    random_numbers(b, dtype_of<T>);
    for (const int columns : {1, 4, 8}) {
        const double bytes = static_cast<double>(a.bytes());
        const Product right{dtype_of<T>,         large,    columns, large, {a.data(), large},
                            {b.data(), columns}, c.data(), columns};
        const Product left{dtype_of<T>, columns, large, large, {b.data(), large}, {a.data(), large}, c.data(), large};
        const auto *x = reinterpret_cast<const T*>(a.data()), *y = reinterpret_cast<const T*>(b.data());
        auto* z = reinterpret_cast<T*>(c.data());
        const std::string what = type<T>() + std::to_string(columns);
        measure("3000² matrix by vectors, " + what, "bytes", {bytes, [&] { gemm(right, 1); }}, reading(a),
                {bytes, [&] { blas(large, columns, large, x, y, z, 1); }, "BLAS"});
        measure("vectors by 3000² matrix, " + what, "bytes", {bytes, [&] { gemm(left, 1); }}, reading(a),
                {bytes, [&] { blas(columns, large, large, y, x, z, 1); }, "BLAS"});
    }
    for (const std::int64_t vectors : {padded<T>(1), padded<T>(24), padded<T>(64)}) {
        const std::int64_t m = 256, k = 512;
        const Strided<T> by_rows{reinterpret_cast<const T*>(a.data()), k, 1},
            by_columns{reinterpret_cast<const T*>(a.data()), 1, m};
        const Buffer few(static_cast<std::size_t>(k * vectors) * sizeof(T)),
            sums(static_cast<std::size_t>(m * vectors) * sizeof(T));
        for (const bool rows : {true, false}) {
            measure(
                "few vectors by " + std::string(rows ? "rows, " : "columns, ") + type<T>() + std::to_string(vectors),
                "operations",
                {2.0 * static_cast<double>(m * k * vectors),
                 [&, rows] {
                     multiply_few(m, k, vectors, rows ? by_rows : by_columns, reinterpret_cast<const T*>(few.data()),
                                  reinterpret_cast<T*>(sums.data()));
                 }},
                multiply_adds<T>());
        }
    }
}

// Decompositions.

void reflectors() {
    for (const std::int64_t reach : {std::int64_t{96}, std::int64_t{1500}}) {
        const std::int64_t count = reach == 96 ? sweeps_in_block : 96, rows = reach + count - 1, width = slab_columns;
        BlockReflector block;
        block.shape(rows, count, reach);
        for (std::int64_t j = 0; j < count; ++j) {
            for (std::int64_t i = 0; i < reach; ++i) {
                block.v(j + i, j) = i == 0 ? 1 : 1e-3;
            }
        }
        const std::vector<double> tau(static_cast<std::size_t>(count), 0.1);
        std::vector<double> t(static_cast<std::size_t>(count * count));
        block.make_t(tau.data(), t.data());
        block.set_t(t.data(), count);
        const Array<double> slab((rows + slab_margin) * width);
        random_numbers(slab, Dtype::float64);
        measure("reflectors, " + std::to_string(count) + " of " + std::to_string(reach) + " rows", "operations",
                {4.0 * static_cast<double>(reach * count * width), [&] { block.apply(slab.data(), width, width); }},
                multiply_adds<double>());
    }
    const std::int64_t n = 768, b = band_width;
    const BandMatrix clean(n, b);
    for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t j = i; j < std::min(n, i + b + 1); ++j) {
            clean.at(i, j) = uniform(random_bits(1, static_cast<std::uint64_t>(i * n + j)));
        }
    }
    const ChasedReflectors kept_reflectors(n, b);
    std::vector<double> d(static_cast<std::size_t>(n)), e(d.size());
    const Array<double> block(2 * b * b);
    measure("bulge chasing", "operations",
            {8.0 * static_cast<double>(n * n * b),
             [&] {
                 const BandMatrix band(n, b);
                 std::memcpy(&band.at(0, 0) - 2 * b, &clean.at(0, 0) - 2 * b,
                             static_cast<std::size_t>(n * band.step()) * sizeof(double));
                 chase_bulges(band, d.data(), e.data(), kept_reflectors, 1, ignore_progress);
             }},
            {4.0 * 2 * b * b,
             [&] { in_widths<reflect_block<16>, reflect_block<32>, reflect_block<64>>(block.data(), 2 * b * b); },
             "a block of the second-level cache summed up and added to"});
}

// Sweeps: of a cell's sum, additions before products, and products.

template <class T, int sums, int products> void sweep_one(const std::string& what, const Weights& weights) {
    const std::int64_t side = 2000;
    Sweeper sweeper(weights, Boundary::zero, dtype_of<T>, false);
    const FieldShape shape = field_shape(side, side, 0, dtype_of<T>);
    const Buffer from(static_cast<std::size_t>(shape.elements) * sizeof(T)), to(from.bytes());
    random_numbers(from, dtype_of<T>);
    for (const int steps : {1, sweeper.best_steps()}) {
        const double points = static_cast<double>(side * side * steps);
        const Work work = [&, steps] {
            sweeper.sweep(shape, {}, from.data(), to.data(), {0, side, 0, side}, steps, 1);
        };
        const std::string name = "sweeps, " + what + ", " + type<T>();
        if (steps == 1) {
            Side bound = copying(from, to, from.bytes());
            bound.amount = static_cast<double>(side * side);
            measure(name + "one a pass", "points", {points, work}, bound);
        } else {
            measure(name + "many a pass", "points", {points, work}, computing<T, sums, products>(1));
        }
    }
}
template <class T> void sweeps() {
    sweep_one<T, 2, 3>("5 points", {1, {0, 0.1, 0, 0.1, 0.6, 0.1, 0, 0.1, 0}});
    sweep_one<T, 0, 5>("5 unlike points", {1, {0, 0.1, 0, 0.12, 0.6, 0.08, 0, 0.1, 0}});
    sweep_one<T, 3, 4>("9 points", {1, {0.05, 0.1, 0.05, 0.1, 0.4, 0.1, 0.05, 0.1, 0.05}});
    sweep_one<T, 0, 9>("9 unlike points", {1, {0.05, 0.1, 0.06, 0.1, 0.4, 0.11, 0.05, 0.09, 0.04}});
}

// What moves bytes.

void transpositions() {
    for (const std::size_t item : {1U, 2U, 3U, 4U, 8U, 16U}) {
        const std::int64_t rows = item > 8 ? 2048 : 4096, columns = item > 4 ? 2048 : 4096,
                           down = columns * static_cast<std::int64_t>(item), across = rows * std::int64_t(item);
        const Buffer from(static_cast<std::size_t>(rows * down)), to(from.bytes());
        random_numbers(from, Dtype::uint8);
        measure("transposition, items of " + std::to_string(item), "bytes",
                {static_cast<double>(from.bytes()),
                 [&] { transpose(from.data(), down, rows, columns, item, to.data(), across, 1); }},
                copying(from, to, from.bytes()));
    }
}

void conversions() {
    const std::int64_t count = 1 << 21;
    const Buffer from(static_cast<std::size_t>(count) * 16), to(from.bytes());
    const std::pair<Dtype, Dtype> pairs[] = {
        {Dtype::float16, Dtype::float32},     {Dtype::float32, Dtype::float16}, {Dtype::float16, Dtype::float64},
        {Dtype::float64, Dtype::float16},     {Dtype::float32, Dtype::float64}, {Dtype::float64, Dtype::float32},
        {Dtype::float64, Dtype::int64},       {Dtype::int64, Dtype::float64},   {Dtype::float64, Dtype::uint64},
        {Dtype::uint64, Dtype::float64},      {Dtype::float64, Dtype::int32},   {Dtype::int32, Dtype::float64},
        {Dtype::float32, Dtype::int32},       {Dtype::int32, Dtype::float32},   {Dtype::float64, Dtype::uint8},
        {Dtype::uint8, Dtype::float32},       {Dtype::uint16, Dtype::float64},  {Dtype::int64, Dtype::int32},
        {Dtype::int16, Dtype::int64},         {Dtype::float64, Dtype::uint32},  {Dtype::complex64, Dtype::complex128},
        {Dtype::complex128, Dtype::complex64}};
    for (const auto& [one, other] : pairs) {
        random_numbers(from, one);
        const auto larger = static_cast<double>(std::max(size_of(one), size_of(other))) * count;
        measure("conversion, " + std::string(name_of(one)) + " to " + std::string(name_of(other)), "bytes",
                {larger, [&, a = one, b = other] { convert(from.data(), a, false, to.data(), b, false, count); }},
                copying(from, to, static_cast<std::size_t>(larger)));
    }
    for (const std::size_t width : {2U, 4U, 8U}) {
        measure("bytes swapped, of " + std::to_string(width), "bytes",
                {static_cast<double>(from.bytes()),
                 [&] { swap_bytes(from.data(), to.data(), std::int64_t(from.bytes() / width), width); }},
                copying(from, to, from.bytes()));
    }
}

template <class T> void checks(const std::string& name, Dtype dtype) {
    const std::int64_t m = 2048, n = 4096;
    const Buffer matrix(static_cast<std::size_t>(m * n) * sizeof(T));
    random_numbers(matrix, dtype);
    const auto bytes = static_cast<double>(matrix.bytes());
    Probe<Check<T>> x(n);
    std::fill(x.first.begin(), x.first.end(), Check<T>(1));
    std::fill(x.second.begin(), x.second.end(), Check<T>(2));
    std::fill(x.weights.begin(), x.weights.end(), 1.0);
    Image<Check<T>> y(n);
    measure("check by rows, " + name, "bytes", {bytes, [&] { apply<T>({matrix.data(), n}, m, n, x, 0, y, 0, 1); }},
            reading(matrix));
    measure("check by columns, " + name, "bytes",
            {bytes, [&] { apply<T>({matrix.data(), n, true}, n, m, x, 0, y, 0, 1); }}, reading(matrix));
    if constexpr (!std::is_integral_v<T>) {
        ColumnSizes sizes(n);
        measure("sizes of columns, " + name, "bytes",
                {bytes, [&] { measure_columns<T>({matrix.data(), n}, m, n, sizes, 0, 1); }}, reading(matrix));
        measure("numbers that are not finite, " + name, "bytes",
                {bytes, [&] { kept = static_cast<double>(count_not_finite(matrix.data(), m * n, dtype)); }},
                reading(matrix));
    }
}

void sums_of_bytes() {
    const std::int64_t side = 4096;
    const Buffer data(static_cast<std::size_t>(side * side) * 2), other(data.bytes());
    random_numbers(data, Dtype::uint8);
    const auto bytes = static_cast<double>(data.bytes());
    measure("checksum", "bytes", {bytes, [&] { kept = static_cast<double>(checksum(data.data(), data.bytes(), 1)); }},
            reading(data));
    measure("fletcher32", "bytes",
            {bytes, [&] { kept = fletcher32(data.data(), static_cast<std::int64_t>(data.bytes())); }}, reading(data));
    for (const std::size_t item : {1U, 2U, 4U, 8U, 16U}) {
        const std::int64_t rows = static_cast<std::int64_t>(data.bytes() / item) / side;
        measure(
            "fingerprint, items of " + std::to_string(item), "bytes",
            {bytes, [&] { kept = static_cast<double>(fingerprint(data.data(), rows, side, item, 0, 0, false, 1, 1)); }},
            reading(data));
    }
    for (const std::int64_t item : {2, 4, 8}) {
        const Packing packing{{{FilterKind::shuffle, item}}, static_cast<std::int64_t>(data.bytes())};
        const Buffer chunk(data.bytes() + 64), second(chunk.bytes());
        measure("bytes unshuffled, of " + std::to_string(item), "bytes",
                {bytes, [&] { unpack(packing, 0, chunk.data(), packing.bytes, other.data(), second.data()); }},
                copying(chunk, other, data.bytes()));
    }
    const std::int64_t n = 1 << 21;
    const Buffer numbers(static_cast<std::size_t>(n) * 8);
    for (const auto& [kind, name] : {std::pair{Fill::random, "random"}, {Fill::normal, "normal"}}) {
        for (const Dtype dtype : {Dtype::float64, Dtype::float32}) {
            const double made = static_cast<double>(n) * static_cast<double>(size_of(dtype));
            measure(std::string(name) + " numbers, " + std::string(name_of(dtype)), "bytes",
                    {made, [&, k = kind] { fill(numbers.data(), {{0, 512}, {0, n / 512}}, n / 512, dtype, k, 1, 1); }},
                    kind == Fill::normal
                        ? Side{}
                        : Side{made, [&, made] { std::memset(numbers.data(), 1, static_cast<std::size_t>(made)); },
                               "memory written"});
        }
    }
}

// Texts: a peer that reads or prints number after number.

template <class T> void texts(const std::string& name, Dtype dtype) {
    const std::int64_t rows = 2000, columns = 100;
    const Buffer numbers(static_cast<std::size_t>(rows * columns) * sizeof(T)), back(numbers.bytes());
    random_numbers(numbers, dtype);
    TextStyle style;
    style.separator = ',';
    style.line_numbers = columns;
    std::vector<char> text(static_cast<std::size_t>(rows * columns) * text_width(dtype, style));
    char* end = format_text(numbers.data(), dtype, rows, style, false, text.data());
    const auto bytes = static_cast<double>(end - text.data());
    std::vector<char> out(text.size());
    measure("text read, " + name, "bytes",
            {bytes, [&] { parse_text(text.data(), end, style, dtype, back.data(), rows * columns, 1); }}, {},
            {bytes,
             [&] {
                 T* to = reinterpret_cast<T*>(back.data());
                 for (const char* at = text.data(); at < end; ++at) {
                     at = std::from_chars(at, end, *to++).ptr;
                 }
             },
             "from_chars"});
    measure("text written, " + name, "bytes",
            {bytes, [&] { format_text(numbers.data(), dtype, rows, style, false, out.data()); }}, {},
            {bytes,
             [&] {
                 const T* from = reinterpret_cast<const T*>(numbers.data());
                 char* at = out.data();
                 for (std::int64_t i = 0; i < rows * columns; ++i) {
                     at = std::to_chars(at, out.data() + out.size(), from[i]).ptr;
                     *at++ = ',';
                 }
             },
             "to_chars"});
}

}  // namespace

int main(int count, char** words) {
    if (count < 2) {
        for (const KnownBackend& known : backends()) {
            if (known.supported()) {
                std::cout << known.set.name << '\n';
            }
        }
        return 0;
    }
    rounds = std::atoi(words[1]);
    wanted = count > 2 ? words[2] : "";
    products<double>();
    products<float>();
    reflectors();
    sweeps<double>();
    sweeps<float>();
    transpositions();
    conversions();
    checks<float>("float32", Dtype::float32);
    checks<double>("float64", Dtype::float64);
    checks<std::int64_t>("int64", Dtype::int64);
    checks<std::complex<float>>("complex64", Dtype::complex64);
    checks<std::complex<double>>("complex128", Dtype::complex128);
    sums_of_bytes();
    texts<double>("float64", Dtype::float64);
    texts<float>("float32", Dtype::float32);
    texts<std::int64_t>("int64", Dtype::int64);
}
