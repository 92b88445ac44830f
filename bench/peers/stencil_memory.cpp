// Times stencil sweeps in memory: tilewise's, its plain loops, the best code that makes one sweep a pass, and a
// streaming copy of the same bytes; all sides in turns.
//
// stencil_memory ROWS COLUMNS SWEEPS THREADS ROUNDS [WEIGHTS=star5 DTYPE=float32 DEPTH=0] WEIGHTS: star5,
// star5-general, star9, box3, box3-general, box5, box5-general. DEPTH: sweeps a pass, 0: what tilewise finds best.
// Prints a line of JSON for each side: {"side": …, "seconds": [one a round], "points_per_second": median, "right": the
// same bits as the plain loops, or for the other arithmetic of one-sweep-a-pass nearly}; for the copy {"side": "copy",
// …, "bytes_per_second": read and written}.
#include <algorithm>
#include <barrier>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/random.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/sweep/sweep.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace {

using namespace tilewise;
using namespace tilewise::kernel;

Weights named_weights(const std::string& name) {
    if (name == "star5") {
        return {1, {0, 0.1, 0, 0.1, 0.6, 0.1, 0, 0.1, 0}};
    }
    if (name == "star5-general") {
        return {1, {0, 0.1, 0, 0.12, 0.6, 0.08, 0, 0.1, 0}};
    }
    const int radius = name == "star9" || name.starts_with("box5") ? 2 : 1, side = 2 * radius + 1;
    Weights weights{radius, std::vector<double>(static_cast<std::size_t>(side * side))};
    double sum = 0;
    for (int k = 0; k < side * side; ++k) {
        const int dy = k / side - radius, dx = k % side - radius;
        if (name != "star9" || dy == 0 || dx == 0) {
            weights.values[static_cast<std::size_t>(k)] =
                1.0 / (1 + dy * dy + 2 * dx * dx) + (name.ends_with("-general") ? 0.01 * k : 0);
        }
        sum += weights.values[static_cast<std::size_t>(k)];
    }
    for (double& weight : weights.values) {
        weight /= sum;
    }
    return weights;
}

struct Side {
    std::string name;
    std::function<const std::byte*()> work;  ///< leaves the result in one of the fields
    std::size_t rounds;
    double tolerance;
    std::vector<double> seconds{};
    bool right = true;
};

template <class T> struct Run {
    Weights weights;
    int sweeps, threads, depth;
    FieldShape shape;
    Buffer a{static_cast<std::size_t>(shape.elements) * sizeof(T)}, b{a.bytes()}, expected{a.bytes()};

    T* cell(const std::byte* field, std::int64_t i, std::int64_t j) const {
        return reinterpret_cast<T*>(const_cast<std::byte*>(field)) + shape.origin + i * shape.pitch + j;
    }

    void fill() const {
        parallel_ranges(threads, shape.rows, [&](std::int64_t begin, std::int64_t end, int) {
            for (std::int64_t i = begin; i < end; ++i) {
                const std::uint64_t key = row_key(1, static_cast<std::uint64_t>(i));
                for (std::int64_t j = 0; j < shape.columns; ++j) {
                    *cell(a.data(), i, j) = static_cast<T>(uniform(random_bits(key, static_cast<std::uint64_t>(j))));
                }
            }
        });
    }

    double difference(const std::byte* field) const {
        std::vector<double> worst(static_cast<std::size_t>(threads));
        parallel_ranges(threads, shape.rows, [&](std::int64_t begin, std::int64_t end, int thread) {
            double most = 0;
            for (std::int64_t i = begin; i < end; ++i) {
                for (std::int64_t j = 0; j < shape.columns; ++j) {
                    const double d = std::abs(static_cast<double>(*cell(field, i, j)) -
                                              static_cast<double>(*cell(expected.data(), i, j)));
                    most = d <= most ? most : d;  // NaN too
                }
            }
            worst[static_cast<std::size_t>(thread)] = most;
        });
        return *std::max_element(worst.begin(), worst.end());
    }

    const std::byte* passes(Sweeper& sweeper, int depth_of_pass) const {
        const std::byte* from = a.data();
        std::byte* to = b.data();
        for (int done = 0; done < sweeps;) {
            const int steps = std::min(depth_of_pass, sweeps - done);
            sweeper.sweep(shape, {}, from, to, {0, shape.rows, 0, shape.columns}, steps, threads);
            done += steps;
            std::byte* next = const_cast<std::byte*>(from);
            from = to;
            to = next;
        }
        return from;
    }

    /// One sweep a pass: every thread a band of rows, results past the caches.
    const std::byte* one_a_pass() const;

    void copy() const {
        parallel_ranges(threads, static_cast<std::int64_t>(a.bytes()) / 64,
                        [&](std::int64_t begin, std::int64_t end, int) {
#if defined(__x86_64__)
                            const auto* from = reinterpret_cast<const __m128i*>(a.data());
                            auto* to = reinterpret_cast<__m128i*>(b.data());
                            for (std::int64_t k = 4 * begin; k < 4 * end; k += 4) {
                                const __m128i p = _mm_load_si128(from + k), q = _mm_load_si128(from + k + 1),
                                              r = _mm_load_si128(from + k + 2), s = _mm_load_si128(from + k + 3);
                                _mm_stream_si128(to + k, p);
                                _mm_stream_si128(to + k + 1, q);
                                _mm_stream_si128(to + k + 2, r);
                                _mm_stream_si128(to + k + 3, s);
                            }
                            _mm_sfence();
#else
            std::memcpy(b.data() + 64 * begin, a.data() + 64 * begin, static_cast<std::size_t>(64 * (end - begin)));
#endif
                        });
    }
};

#if defined(__AVX512F__)
struct Wide32 {
    using V = __m512;
    static V all(float x) { return _mm512_set1_ps(x); }
    static V load(const float* p) { return _mm512_loadu_ps(p); }
    static V add(V x, V y) { return _mm512_add_ps(x, y); }
    static V multiply(V x, V y) { return _mm512_mul_ps(x, y); }
    static V multiply_add(V x, V y, V z) { return _mm512_fmadd_ps(x, y, z); }
    static void stream(float* p, V x) { _mm512_stream_ps(p, x); }
};
struct Wide64 {
    using V = __m512d;
    static V all(double x) { return _mm512_set1_pd(x); }
    static V load(const double* p) { return _mm512_loadu_pd(p); }
    static V add(V x, V y) { return _mm512_add_pd(x, y); }
    static V multiply(V x, V y) { return _mm512_mul_pd(x, y); }
    static V multiply_add(V x, V y, V z) { return _mm512_fmadd_pd(x, y, z); }
    static void stream(double* p, V x) { _mm512_stream_pd(p, x); }
};
template <class T> using Wide = std::conditional_t<sizeof(T) == 4, Wide32, Wide64>;
#endif

/// Columns [0, columns) of a row of the result; `five`: the neighbours' weights are the same, and the others 0.
template <class T, int radius, bool five> void one_row(const T* w, const T* from, std::int64_t pitch, T* to,
                                                       std::int64_t columns) {
    constexpr int side = 2 * radius + 1;
    std::int64_t j = 0;
#if defined(__AVX512F__)
    using W = Wide<T>;
    constexpr std::int64_t lanes = 64 / sizeof(T);
    typename W::V weights[side * side];
#pragma GCC unroll 25
    for (int tap = 0; tap < side * side; ++tap) {
        weights[tap] = W::all(w[tap]);
    }
    for (; j + lanes <= columns; j += lanes) {
        const T* c = from + j;
        if constexpr (five) {
            const auto sum =
                W::add(W::add(W::load(c - 1), W::load(c + 1)), W::add(W::load(c - pitch), W::load(c + pitch)));
            W::stream(to + j, W::multiply_add(W::load(c), weights[4], W::multiply(weights[1], sum)));
        } else {
            auto sum = W::multiply(W::load(c - radius * pitch - radius), weights[0]);
#pragma GCC unroll 25
            for (int tap = 1; tap < side * side; ++tap) {
                sum = W::multiply_add(W::load(c + (tap / side - radius) * pitch + tap % side - radius), weights[tap],
                                      sum);
            }
            W::stream(to + j, sum);
        }
    }
#endif
    for (; j < columns; ++j) {
        T sum = 0;
        for (int tap = 0; tap < side * side; ++tap) {
            sum += w[tap] * from[j + (tap / side - radius) * pitch + tap % side - radius];
        }
        to[j] = sum;
    }
}

template <class T> const std::byte* Run<T>::one_a_pass() const {
    std::vector<T> w;
    for (const double weight : weights.values) {
        w.push_back(static_cast<T>(weight));
    }
    const auto& v = weights.values;
    const bool five = weights.radius == 1 && v[0] == 0 && v[2] == 0 && v[6] == 0 && v[8] == 0 && v[1] == v[3] &&
                      v[1] == v[5] && v[1] == v[7];
    const auto row = five ? one_row<T, 1, true> : weights.radius == 1 ? one_row<T, 1, false> : one_row<T, 2, false>;
    std::barrier together(threads);
    parallel_ranges(threads, shape.rows, [&](std::int64_t begin, std::int64_t end, int) {
        const std::byte *from = a.data(), *to = b.data();
        for (int sweep = 0; sweep < sweeps; ++sweep) {
            for (std::int64_t i = begin; i < end; ++i) {
                row(w.data(), cell(from, i, 0), shape.pitch, cell(to, i, 0), shape.columns);
            }
#if defined(__x86_64__)
            _mm_sfence();
#endif
            together.arrive_and_wait();
            std::swap(from, to);
        }
    });
    return sweeps % 2 == 0 ? a.data() : b.data();
}

template <class T> int run(const std::vector<std::string>& words, Dtype dtype) {
    const std::int64_t rows = std::stoll(words[0]), columns = std::stoll(words[1]);
    const auto rounds = static_cast<std::size_t>(std::stoll(words[4]));
    const Weights weights = named_weights(words[5]);
    Run<T> r{weights, std::stoi(words[2]), std::stoi(words[3]), std::stoi(words[7]),
             field_shape(rows, columns, weights.radius, dtype)};
    Sweeper fast(weights, Boundary::zero, dtype, false), plain(weights, Boundary::zero, dtype, true);
    if (r.depth == 0) {
        r.depth = fast.best_steps();
    }
    r.fill();
    std::memcpy(r.expected.data(), r.passes(plain, 1), r.a.bytes());
    const double points = static_cast<double>(rows) * static_cast<double>(columns) * r.sweeps;
    const double rounding = (sizeof(T) == 4 ? 1e-7 : 1e-16) * r.sweeps;
    std::vector<Side> sides;
    sides.push_back({"copy", [&] { return r.copy(), nullptr; }, 3 * rounds, 0});
    sides.push_back({"tilewise", [&] { return r.passes(fast, r.depth); }, rounds, 0});
    sides.push_back({"one sweep a pass", [&] { return r.one_a_pass(); }, rounds, rounding});
    sides.push_back({"plain", [&] { return r.passes(plain, 1); }, std::min<std::size_t>(rounds, 1), 0});
    for (std::size_t round = 0; round < rounds; ++round) {
        for (std::size_t k = 0; k < sides.size(); ++k) {
            Side& side = sides[round % 2 == 0 ? k : sides.size() - 1 - k];
            for (std::size_t turn = round * side.rounds / rounds; turn < (round + 1) * side.rounds / rounds; ++turn) {
                r.fill();
                const auto begin = std::chrono::steady_clock::now();
                const std::byte* result = side.work();
                side.seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
                side.right = side.right && (result == nullptr || r.difference(result) <= side.tolerance);
            }
        }
    }
    bool right = true;
    for (Side& side : sides) {
        std::cout << R"({"side": ")" << side.name << R"(", "seconds": [)";
        for (std::size_t k = 0; k < side.seconds.size(); ++k) {
            std::cout << (k > 0 ? ", " : "") << side.seconds[k];
        }
        std::sort(side.seconds.begin(), side.seconds.end());
        const double median = side.seconds[side.seconds.size() / 2];
        if (side.name == "copy") {
            std::cout << R"(], "bytes_per_second": )" << 2 * static_cast<double>(r.a.bytes()) / median;
        } else {
            std::cout << R"(], "points_per_second": )" << points / median;
        }
        if (side.name == "tilewise") {
            std::cout << R"(, "depth": )" << r.depth << R"(, "flops_per_point": )" << fast.flops_per_point();
        }
        std::cout << R"(, "right": )" << (side.right ? "true" : "false") << "}\n";
        right = right && side.right;
    }
    return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<std::string> words(argv + 1, argv + argc);
    if (words.size() < 5 || words.size() > 8) {
        std::cerr << "usage: stencil_memory ROWS COLUMNS SWEEPS THREADS ROUNDS [WEIGHTS DTYPE DEPTH]\n";
        return 2;
    }
    const std::vector<std::string> rest{"star5", "float32", "0"};
    words.insert(words.end(), rest.begin() + static_cast<std::ptrdiff_t>(words.size()) - 5, rest.end());
    return words[6] == "float64" ? run<double>(words, Dtype::float64) : run<float>(words, Dtype::float32);
}
