// Times transposition in memory beside copies of the same bytes, HPTT where it was built in, and two loops; all sides
// in turns.
//
// transpose_memory ROWS COLUMNS ITEM THREADS ROUNDS [TILE_ROWS TILE_COLUMNS STREAMING]
// Prints a line of JSON for each side: {"side": …, "seconds": [one for each round], "right": every item was where it
// belongs}; for HPTT {"side": "hptt", "not": why} where it cannot be run. Without a tile, the best is found first, as
// tilewise does.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/random.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/transpose/transpose.hpp"
#include "tilewise/measure/transpose_tile.hpp"

#if defined(TILEWISE_HPTT)
#include <complex>
#include <hptt.h>
#endif
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace {

using namespace tilewise;

struct Side {
    std::string name;
    std::function<void()> work;
    bool copies = false;  ///< what it leaves is the source, not its transpose
    std::size_t rounds = 0;
    std::vector<double> seconds{};
    bool right = true;
};

struct Matrices {
    std::int64_t rows, columns, item;
    int threads;
    std::int64_t bytes = rows * columns * item;
    Buffer from{static_cast<std::size_t>(bytes)}, to{static_cast<std::size_t>(bytes)};

    void fill() const {
        parallel_ranges(threads, bytes, [&](std::int64_t begin, std::int64_t end, int) {
            for (std::int64_t i = begin; i < end; ++i) {
                from.data()[i] =
                    static_cast<std::byte>(mix(static_cast<std::uint64_t>(i)) & 0x3f);  // no NaN in any type
            }
        });
        std::memset(to.data(), 0, to.bytes());
    }

    bool turned() const {
        std::vector<char> right(static_cast<std::size_t>(threads), 1);
        parallel_ranges(threads, columns, [&](std::int64_t begin, std::int64_t end, int thread) {
            constexpr std::int64_t tile = 64;
            bool good = true;
            for (std::int64_t i0 = 0; i0 < rows; i0 += tile) {
                for (std::int64_t j0 = begin; j0 < end; j0 += tile) {
                    for (std::int64_t j = j0; j < std::min(j0 + tile, end); ++j) {
                        for (std::int64_t i = i0; i < std::min(i0 + tile, rows); ++i) {
                            good &=
                                std::memcmp(to.data() + (j * rows + i) * item, from.data() + (i * columns + j) * item,
                                            static_cast<std::size_t>(item)) == 0;
                        }
                    }
                }
            }
            right[static_cast<std::size_t>(thread)] = good;
        });
        return std::all_of(right.begin(), right.end(), [](char good) { return good; });
    }

    bool copied() const { return std::memcmp(to.data(), from.data(), static_cast<std::size_t>(bytes)) == 0; }

    void copy() const {
        parallel_ranges(threads, bytes, [&](std::int64_t begin, std::int64_t end, int) {
            std::memcpy(to.data() + begin, from.data() + begin, static_cast<std::size_t>(end - begin));
        });
    }

#if defined(__x86_64__)
    /// Whole lines past the caches; what a last line lacks is copied.
    void streaming_copy() const {
        parallel_ranges(threads, bytes / 64, [&](std::int64_t begin, std::int64_t end, int) {
            const auto* source = reinterpret_cast<const __m128i*>(from.data());
            auto* target = reinterpret_cast<__m128i*>(to.data());
            for (std::int64_t line = begin; line < end; ++line) {
                const __m128i a = _mm_load_si128(source + 4 * line), b = _mm_load_si128(source + 4 * line + 1),
                              c = _mm_load_si128(source + 4 * line + 2), d = _mm_load_si128(source + 4 * line + 3);
                _mm_stream_si128(target + 4 * line, a);
                _mm_stream_si128(target + 4 * line + 1, b);
                _mm_stream_si128(target + 4 * line + 2, c);
                _mm_stream_si128(target + 4 * line + 3, d);
            }
            _mm_sfence();
        });
        const std::int64_t whole = bytes / 64 * 64;
        std::memcpy(to.data() + whole, from.data() + whole, static_cast<std::size_t>(bytes - whole));
    }
#endif
};

#if defined(TILEWISE_HPTT)
template <class T> std::function<void()> hptt_work(const Matrices& m) {
    const int order[] = {1, 0};
    const int sizes[] = {static_cast<int>(m.rows), static_cast<int>(m.columns)};
    auto plan = hptt::create_plan(order, 2, T{1}, reinterpret_cast<const T*>(m.from.data()), sizes, nullptr, T{0},
                                  reinterpret_cast<T*>(m.to.data()), nullptr, hptt::MEASURE, m.threads, nullptr, true);
    return [plan] { plan->execute(); };
}
#endif

std::function<void()> hptt_side(const Matrices& m) {
#if defined(TILEWISE_HPTT)
    switch (m.item) {
        case 4:
            return hptt_work<float>(m);
        case 8:
            return hptt_work<double>(m);
        case 16:
            return hptt_work<std::complex<double>>(m);
        default:
            std::cout << R"({"side": "hptt", "not": "no type of this size"})" << '\n';
            return {};
    }
#else
    static_cast<void>(m);
    std::cout << R"({"side": "hptt", "not": "not built"})" << '\n';
    return {};
#endif
}

void measure(const Matrices& m, std::vector<Side>& sides, std::size_t rounds) {
    for (std::size_t round = 0; round < rounds; ++round) {
        for (std::size_t k = 0; k < sides.size(); ++k) {
            Side& side = sides[round % 2 == 0 ? k : sides.size() - 1 - k];
            if (round >= side.rounds) {
                continue;
            }
            if (round == 0) {
                std::memset(m.to.data(), 0, m.to.bytes());
            }
            const auto begin = std::chrono::steady_clock::now();
            side.work();
            side.seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
            if (round == 0) {
                side.right = side.copies ? m.copied() : m.turned();
            }
        }
    }
}

int run(int argc, char** argv) {
    if (argc != 6 && argc != 9) {
        std::cerr << "usage: transpose_memory ROWS COLUMNS ITEM THREADS ROUNDS [TILE_ROWS TILE_COLUMNS STREAMING]\n";
        return 2;
    }
    const Matrices m{std::atoll(argv[1]), std::atoll(argv[2]), std::atoll(argv[3]), std::atoi(argv[4])};
    const auto rounds = static_cast<std::size_t>(std::atoll(argv[5]));
    const auto item = static_cast<std::size_t>(m.item);
    kernel::TransposeTile tile;
    if (argc == 9) {
        tile = {.rows = std::atoll(argv[6]), .columns = std::atoll(argv[7]), .streaming = std::atoi(argv[8]) != 0};
    } else {
        tile = measure::transpose_tile(item, m.threads).tile;
    }
    m.fill();
    std::vector<Side> sides;
    sides.push_back({.name = "memcpy", .work = [&] { m.copy(); }, .copies = true, .rounds = rounds});
    sides.push_back({.name = "tilewise",
                     .work =
                         [&] {
                             kernel::transpose(m.from.data(), m.columns * m.item, m.rows, m.columns, item, m.to.data(),
                                               m.rows * m.item, m.threads, tile);
                         },
                     .rounds = rounds});
#if defined(__x86_64__)
    sides.push_back({.name = "streaming copy", .work = [&] { m.streaming_copy(); }, .copies = true, .rounds = rounds});
#endif
    if (auto work = hptt_side(m)) {
        sides.push_back({.name = "hptt", .work = std::move(work), .rounds = rounds});
    }
    sides.push_back({.name = "plain",
                     .work =
                         [&] {
                             kernel::plain_transpose(m.from.data(), m.columns * m.item, m.rows, m.columns, item,
                                                     m.to.data(), m.rows * m.item);
                         },
                     .rounds = std::min<std::size_t>(rounds, 2)});  // slow, and only shown
    measure(m, sides, rounds);
    std::cout << R"({"side": "tile", "rows": )" << tile.rows << R"(, "columns": )" << tile.columns
              << R"(, "streaming": )" << (tile.streaming ? "true" : "false") << "}\n";
    bool right = true;
    for (const Side& side : sides) {
        std::cout << R"({"side": ")" << side.name << R"(", "seconds": [)";
        for (std::size_t i = 0; i < side.seconds.size(); ++i) {
            std::cout << (i > 0 ? ", " : "") << side.seconds[i];
        }
        std::cout << R"(], "right": )" << (side.right ? "true" : "false") << "}\n";
        right &= side.right;
    }
    return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) { return run(argc, argv); }
