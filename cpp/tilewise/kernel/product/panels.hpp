// Operands of a product, or sums of several blocks of one, packed into panels in the sequence in which tiles read them.
//
//        rows of A (columns of B):      panels of so many of them, one step of k after the other, the last padded by
//        0 1 2 3 4 5 6 7 8 9            zeros:
//      k [ . . . . . . . . . . ]            [ 0 1 2 3 | next k | … ]  [ 4 5 6 7 | … ]  [ 8 9 0 0 | … ]
//      ↓ [ . . . . . . . . . . ]
//
// Where k runs along memory, squares are turned round in registers: of one block where they lie, of sums in a buffer
// that stays in the first-level cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tilewise/kernel/isa/registers.hpp"
#include "tilewise/kernel/isa/turn.hpp"
#include "tilewise/kernel/product/gemm_set.hpp"

namespace tilewise::kernel {
namespace {

/// The widest register, of at most `width` bytes, that so many bytes are a multiple of.
constexpr std::size_t register_for(std::size_t bytes, std::size_t width) {
    return bytes % width == 0 ? width : register_for(bytes, width / 2);
}

/// Panels of `panel` rows of A or columns of B, by registers of `width` bytes.
template <class T, std::size_t width, std::int64_t panel> class Panels {
public:
    static void pack(const Terms<T>& x, std::int64_t outer, std::int64_t depth, T* panels) {
        if constexpr (std::is_integral_v<T>) {  // no sums are asked for
            return pack_sums<1>(x, outer, depth, panels);
        } else {
            switch (x.count) {
                case 1:
                    return pack_sums<1>(x, outer, depth, panels);
                case 2:
                    return pack_sums<2>(x, outer, depth, panels);
                case 4:
                    return pack_sums<4>(x, outer, depth, panels);
                default:
                    return pack_sums<8>(x, outer, depth, panels);
            }
        }
    }

private:
    static constexpr std::size_t bytes = register_for(static_cast<std::size_t>(panel) * sizeof(T), width);
    static constexpr std::int64_t lanes = bytes / sizeof(T), item = sizeof(T);

    static std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

    /// A register, or a number, of the sum, `offset` numbers into its terms.
    template <std::size_t terms, std::size_t size>
    [[gnu::always_inline]] static auto sum_at(const Terms<T>& x, std::int64_t offset) {
        using V = typename Vector<T, size>::type;
        V sum = load<T, size>(x.at[0] + offset);
#pragma GCC unroll 8
        for (std::size_t t = 1; t < terms; ++t) {
            sum = multiply_add(everywhere<V>(x.sign[t]), load<T, size>(x.at[t] + offset), sum);
        }
        return sum;
    }
    template <std::size_t terms> [[gnu::always_inline]] static T number_at(const Terms<T>& x, std::int64_t offset) {
        T sum = x.at[0][offset];
        for (std::size_t t = 1; t < terms; ++t) {
            sum += x.sign[t] * x.at[t][offset];
        }
        return sum;
    }

    template <std::size_t terms> static void pack_sums(const Terms<T>& x, std::int64_t outer, std::int64_t depth,
                                                       T* to) {
        const bool turned = x.down == 1 && x.along != 1;
        std::int64_t begin = turned || x.along != 1 ? 0 : pack_rows<terms>(x, outer / panel, depth, to) * panel;
        for (to += begin * depth; begin < outer; begin += panel, to += panel * depth) {
            const std::int64_t here = smaller(outer - begin, panel), offset = begin * x.along;
            if (turned) {
                pack_turned<terms>(x, offset, here, depth, to);
            } else {
                for (std::int64_t p = 0; p < depth; ++p) {
                    for (std::int64_t i = 0; i < here; ++i) {
                        to[p * panel + i] = number_at<terms>(x, offset + p * x.down + i * x.along);
                    }
                }
            }
            for (std::int64_t p = 0; here < panel && p < depth; ++p) {
                for (std::int64_t i = here; i < panel; ++i) {
                    to[p * panel + i] = T{};
                }
            }
        }
    }

    /// Whole panels, of numbers that lie side by side on the outer side: rows of several panels at a time, as each is
    /// short and the next may lie in another page. Returns how many panels there are.
    template <std::size_t terms> static std::int64_t pack_rows(const Terms<T>& x, std::int64_t panels,
                                                               std::int64_t depth, T* to) {
        constexpr std::int64_t together = 4;
        for (std::int64_t first = 0; first < panels; first += together) {
            const std::int64_t last = smaller(panels, first + together);
            for (std::int64_t p = 0; p < depth; ++p) {
                for (std::int64_t i = first; i < last; ++i) {
#pragma GCC unroll 4
                    for (std::int64_t j = 0; j < panel; j += lanes) {
                        const auto sum = sum_at<terms, bytes>(x, p * x.down + i * panel + j);
                        std::memcpy(to + (i * depth + p) * panel + j, &sum, bytes);
                    }
                }
            }
        }
        return panels;
    }

    /// One panel, `outer` rows of which there are, whose numbers of k lie side by side.
    template <std::size_t terms> static void pack_turned(const Terms<T>& x, std::int64_t offset, std::int64_t outer,
                                                         std::int64_t depth, T* to) {
        if constexpr (terms == 1) {
            turn_rows(x.at[0] + offset, x.along, outer, depth, to);
        } else {
            constexpr auto wide = static_cast<std::int64_t>(width / sizeof(T)), span = 4 * wide;
            alignas(64) T sums[static_cast<std::size_t>(panel * span)];
            for (std::int64_t p = 0; p < depth; p += span) {
                const std::int64_t here = smaller(span, depth - p);
                for (std::int64_t i = 0; i < outer; ++i) {
                    const std::int64_t row = offset + i * x.along + p;
                    std::int64_t q = 0;
                    for (; q + wide <= here; q += wide) {
                        const auto sum = sum_at<terms, width>(x, row + q);
                        std::memcpy(sums + i * span + q, &sum, width);
                    }
                    for (; q < here; ++q) {
                        sums[i * span + q] = number_at<terms>(x, row + q);
                    }
                }
                turn_rows(sums, span, outer, here, to + p * panel);
            }
        }
    }

    /// Rows, `stride` apart, become columns of a panel: as many at a time as fill a register.
    [[gnu::always_inline]] static void turn_rows(const T* from, std::int64_t stride, std::int64_t outer,
                                                 std::int64_t depth, T* to) {
        constexpr std::size_t columns = 16 / sizeof(T);
        constexpr auto step = static_cast<std::int64_t>(columns);
        std::int64_t i = 0;
        for (; i + lanes <= outer; i += lanes) {
            const T* square = from + i * stride;
            std::int64_t p = 0;
            for (; p + step <= depth; p += step) {
                typename Register<bytes>::type turned[columns];
                turn<bytes, sizeof(T)>(reinterpret_cast<const std::byte*>(square + p), stride * item, turned);
#pragma GCC unroll 4
                for (std::int64_t c = 0; c < step; ++c) {
                    std::memcpy(to + (p + c) * panel + i, turned + c, bytes);
                }
            }
            for (; p < depth; ++p) {
                for (std::int64_t r = 0; r < lanes; ++r) {
                    to[p * panel + i + r] = square[r * stride + p];
                }
            }
        }
        for (; i < outer; ++i) {
            for (std::int64_t p = 0; p < depth; ++p) {
                to[p * panel + i] = from[i * stride + p];
            }
        }
    }
};

}  // namespace
}  // namespace tilewise::kernel
