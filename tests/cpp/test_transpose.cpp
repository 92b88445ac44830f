// Tests of transposition against two loops: every size of item and width of registers, odd shapes, starts and strides;
// and of the fingerprints that prove it.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <doctest/doctest.h>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tilewise/base/error.hpp"
#include "tilewise/base/random.hpp"
#include "tilewise/kernel/codec/checksum.hpp"
#include "tilewise/kernel/isa/backend.hpp"
#include "tilewise/kernel/transpose/transpose.hpp"

using namespace tilewise;
using namespace tilewise::kernel;

namespace {

using Bytes = std::vector<std::byte>;

constexpr std::array<std::pair<std::int64_t, std::int64_t>, 15> shapes{{{0, 5},
                                                                        {5, 0},
                                                                        {1, 1},
                                                                        {1, 97},
                                                                        {97, 1},
                                                                        {2, 131},
                                                                        {3, 5},
                                                                        {17, 16},
                                                                        {63, 65},
                                                                        {64, 64},
                                                                        {65, 63},
                                                                        {100, 257},
                                                                        {128, 192},
                                                                        {1000, 37},
                                                                        {37, 1000}}};

/// A source and a target at odd places of memory that is full of other bytes: what lies around the target must stay as
/// it is.
struct Case {
    std::int64_t rows, columns;
    std::size_t item;
    std::int64_t start, from_gap, to_gap;
    std::int64_t size = static_cast<std::int64_t>(item);
    std::int64_t from_stride = columns * size + from_gap, to_stride = rows * size + to_gap;
    Bytes from = random_bytes(rows * from_stride, 1), to = random_bytes(columns * to_stride, 2), expected = to;

    static constexpr std::int64_t guard = 256;

    Bytes random_bytes(std::int64_t count, std::uint64_t seed) const {
        Bytes bytes(static_cast<std::size_t>(count + 2 * guard));
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            bytes[i] = static_cast<std::byte>(mix(seed * 1000003 + i));
        }
        return bytes;
    }

    /// The first place in `bytes`, at least half a guard from its start, that lies `start` bytes behind a line.
    std::byte* at(Bytes& bytes) const {
        const auto behind = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(bytes.data()) % 64);
        return bytes.data() + 64 + (64 - behind) % 64 + start;
    }

    Case& expect() {
        // `expected` lies elsewhere in memory; it gets the same bytes at the same distance from its own begin as `to`.
        plain_transpose(at(from), from_stride, rows, columns, item, expected.data() + (at(to) - to.data()), to_stride);
        return *this;
    }

    std::string name() const {
        return std::to_string(rows) + "x" + std::to_string(columns) + " of " + std::to_string(item) + " bytes at " +
               std::to_string(start) + ", gaps " + std::to_string(from_gap) + " and " + std::to_string(to_gap);
    }
};

/// Of each backend that this processor supports, called as transpose would call it.
std::vector<void (*)(std::size_t, const TransposeStrip&)> widths() {
    std::vector<void (*)(std::size_t, const TransposeStrip&)> found;
    for (const KnownBackend& row : backends()) {
        if (row.supported()) {
            found.push_back(row.set.transpose);
        }
    }
    return found;
}

}  // namespace

TEST_CASE("transposition of every size of item, shape, start and stride is that of two loops") {
    constexpr std::array<std::array<std::int64_t, 3>, 6> places{
        {{0, 0, 0}, {1, 0, 0}, {48, 0, 64}, {8, 5, 3}, {0, 64, 128}, {16, 1, 48}}};
    for (std::size_t item = 1; item <= 16; ++item) {
        for (const auto& [rows, columns] : shapes) {
            for (const auto& [start, from_gap, to_gap] : places) {
                Case c{rows, columns, item, start, from_gap, to_gap};
                c.expect();
                const Bytes before = c.to;
                for (const TransposeTile& tile : {TransposeTile{.rows = 64, .columns = 64, .streaming = false},
                                                  TransposeTile{.rows = 1, .columns = 1, .streaming = true},
                                                  TransposeTile{.rows = 128, .columns = 64, .streaming = true},
                                                  TransposeTile{.rows = 64, .columns = 512, .streaming = true}}) {
                    for (const int threads : {1, 3}) {
                        c.to = before;
                        transpose(c.at(c.from), c.from_stride, rows, columns, item, c.at(c.to), c.to_stride, threads,
                                  tile);
                        CAPTURE(c.name());
                        CAPTURE(tile.rows);
                        CAPTURE(tile.streaming);
                        REQUIRE((c.to == c.expected));
                    }
                }
            }
        }
    }
}

TEST_CASE("sources whose rows lie pages apart") {
    for (const std::size_t item : {1U, 2U, 4U, 8U, 16U}) {
        for (const std::int64_t start : {0, 5}) {
            const std::int64_t rows = 300, columns = 130, size = static_cast<std::int64_t>(item);
            Case c{rows, columns, item, start, 4096 - columns * size, 0};
            c.expect();
            transpose(c.at(c.from), c.from_stride, rows, columns, item, c.at(c.to), c.to_stride, 2,
                      {.rows = 64, .columns = 128, .streaming = true});
            CAPTURE(c.name());
            CHECK((c.to == c.expected));
        }
    }
}

TEST_CASE("strides that line rows of the target up are met from every start") {
    for (const std::size_t item : {1U, 2U, 3U, 4U, 8U, 12U, 16U}) {
        for (std::int64_t start = 0; start < 64; ++start) {
            const std::int64_t rows = 150, columns = 70, size = static_cast<std::int64_t>(item);
            Case c{rows, columns, item, start, 0, (64 - rows * size % 64) % 64 + 64};
            c.expect();
            transpose(c.at(c.from), c.from_stride, rows, columns, item, c.at(c.to), c.to_stride, 2,
                      {.rows = 64, .columns = 64, .streaming = true});
            CAPTURE(c.name());
            REQUIRE((c.to == c.expected));
        }
    }
}

TEST_CASE("each width of registers turns strips alike, lined up or not") {
    for (const auto turn_strip : widths()) {
        for (std::size_t item = 1; item <= 16; ++item) {
            for (const bool streaming : {false, true}) {
                for (const std::int64_t start : {0, 8, 33}) {
                    const std::int64_t rows = 203, columns = 137, size = static_cast<std::int64_t>(item);
                    Case c{rows, columns, item, start, 7, (64 - rows * size % 64) % 64};
                    c.expect();
                    std::vector<std::byte> memory(static_cast<std::size_t>(staging_bytes(columns, 64, size)) + 64);
                    const auto behind = reinterpret_cast<std::uintptr_t>(memory.data()) % 64;
                    turn_strip(item, {.from = c.at(c.from),
                                      .from_stride = c.from_stride,
                                      .to = c.at(c.to),
                                      .to_stride = c.to_stride,
                                      .rows = rows,
                                      .columns = columns,
                                      .tile_rows = 64,
                                      .streaming = streaming,
                                      .lined_up = start == 0,
                                      .staging = memory.data() + (64 - behind) % 64});
                    CAPTURE(c.name());
                    CAPTURE(streaming);
                    REQUIRE((c.to == c.expected));
                }
            }
        }
    }
}

TEST_CASE("a matrix that is large enough for threads and streaming is turned whole") {
    for (const std::size_t item : {2U, 8U, 12U}) {
        for (const int threads : {1, 2, 3, 64}) {
            Case c{1501, 1203, item, 24, 0, 0};
            c.expect();
            transpose(c.at(c.from), c.from_stride, c.rows, c.columns, item, c.at(c.to), c.to_stride, threads);
            CAPTURE(c.name());
            REQUIRE((c.to == c.expected));
        }
    }
}

TEST_CASE("items of no size or of too large a size are refused") {
    Bytes nothing(64);
    CHECK_THROWS_AS(transpose(nothing.data(), 17, 1, 1, 17, nothing.data(), 17, 1), Error);
    CHECK_THROWS_AS(transpose(nothing.data(), 0, 1, 1, 0, nothing.data(), 0, 1), Error);
}

TEST_CASE("the fingerprint of a transpose is the swapped one, and that of pieces adds up") {
    for (const std::size_t item : {1U, 2U, 4U, 8U, 16U}) {
        Case c{37, 53, item, 0, 0, 0};
        c.expect();
        const auto size = static_cast<std::int64_t>(item);
        const std::uint64_t whole = fingerprint(c.at(c.from), c.rows, c.columns, item, 0, 0, false, 7, 2);
        CAPTURE(item);
        CHECK(whole ==
              fingerprint(c.expected.data() + (c.at(c.to) - c.to.data()), c.columns, c.rows, item, 0, 0, true, 7, 1));
        std::uint64_t sum = 0;
        for (const auto& [begin, end] : {std::pair<std::int64_t, std::int64_t>{0, 20}, {20, 53}}) {
            Bytes piece;
            for (std::int64_t row = 0; row < c.rows; ++row) {
                const std::byte* from = c.at(c.from) + (row * c.columns + begin) * size;
                piece.insert(piece.end(), from, from + (end - begin) * size);
            }
            sum += fingerprint(piece.data(), c.rows, end - begin, item, 0, begin, false, 7, 1);
        }
        CHECK(whole == sum);
        c.at(c.from)[5 * size] ^= std::byte{1};
        CHECK(whole != fingerprint(c.at(c.from), c.rows, c.columns, item, 0, 0, false, 7, 1));
    }
}

TEST_CASE("all NaNs become one, and nothing else changes") {
    const auto expect_one_nan = [](auto infinity) {
        using Bits = decltype(infinity);
        constexpr auto sign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
        const auto with_sign = static_cast<Bits>(infinity | sign), quiet = static_cast<Bits>(infinity | infinity >> 1);
        const std::array<Bits, 6> kept{0, sign, 1, infinity, with_sign, static_cast<Bits>(infinity - 1)};
        std::array<Bits, 10> all{};
        std::copy(kept.begin(), kept.end(), all.begin());
        all[6] = static_cast<Bits>(infinity + 1);  // signalling
        all[7] = static_cast<Bits>(with_sign + 1);
        all[8] = static_cast<Bits>(quiet | sign);
        all[9] = std::numeric_limits<Bits>::max();
        make_nans_equal(reinterpret_cast<std::byte*>(all.data()), all.size(), sizeof(Bits));
        CHECK(std::equal(kept.begin(), kept.end(), all.begin()));
        CHECK(std::count(all.begin() + 6, all.end(), quiet) == 4);
    };
    expect_one_nan(std::uint16_t{0x7C00});
    expect_one_nan(std::bit_cast<std::uint32_t>(std::numeric_limits<float>::infinity()));
    expect_one_nan(std::bit_cast<std::uint64_t>(std::numeric_limits<double>::infinity()));
    CHECK_THROWS_AS(make_nans_equal(nullptr, 0, 1), Error);
}
