// The arithmetic of Strassen's products: panels packed from sums of blocks, their product, and adding it to several
// blocks.
//
//     rows of two blocks of A     [ a ]  ±  [ a' ]   ─▶  [ | | ]   one panel: depth after depth, `rows` numbers each
//
//     a tile of the product       [ # . . ]   rows × vectors in registers for the whole depth, from where it goes to a
//                                 [ . . . ]   buffer that stays in cache, and as whole rows of that to C: tiles of C
//                                             itself would lie far apart, and share few places of the caches
//
// J. Huang, T. M. Smith, G. M. Henry and R. van de Geijn, "Strassen's algorithm reloaded", 2016. In an unnamed
// namespace, like all that is compiled for several instruction sets: the linker must not take the code of one for
// another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tilewise/kernel/product/strassen_set.hpp"
#include "tilewise/kernel/transpose/transpose_turn.hpp"

namespace tilewise::kernel {
namespace {

template <class T, std::int64_t lanes> struct Lanes {
    typedef T type
        __attribute__((vector_size(static_cast<std::size_t>(lanes) * sizeof(T)), aligned(sizeof(T)), may_alias));
};

/// In vectors of `width` bytes, by tiles of `rows` × `vectors`.
template <class T, std::size_t width, int rows, int vectors> struct Panels {
    static constexpr std::int64_t lanes = static_cast<std::int64_t>(width / sizeof(T)), columns = vectors * lanes;

    template <std::int64_t count> static const typename Lanes<T, count>::type& load(const T* from) {
        return *reinterpret_cast<const typename Lanes<T, count>::type*>(from);
    }

    static void tile(std::int64_t depth, const T* a, const T* b, T* product, std::int64_t stride) {
        using V = typename Lanes<T, lanes>::type;
        V sum[std::size_t{rows}][std::size_t{vectors}] = {};
        for (std::int64_t p = 0; p < depth; ++p, a += rows, b += columns) {
            V right[std::size_t{vectors}];
#pragma GCC unroll 3
            for (std::int64_t v = 0; v < vectors; ++v) {
                right[v] = load<lanes>(b + v * lanes);
            }
#pragma GCC unroll 8
            for (std::int64_t r = 0; r < rows; ++r) {
                const V left = a[r] - V{};  // the same number everywhere: less nothing, not even its sign changes
#pragma GCC unroll 3
                for (std::int64_t v = 0; v < vectors; ++v) {
                    sum[r][v] += left * right[v];
                }
            }
        }
#pragma GCC unroll 8
        for (std::int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 3
            for (std::int64_t v = 0; v < vectors; ++v) {
                std::memcpy(product + r * stride + v * lanes, &sum[r][v], width);
            }
        }
    }

    static void multiply(std::int64_t m, std::int64_t n, std::int64_t depth, const T* a, const T* b, T* product,
                         std::int64_t stride) {
        for (std::int64_t j = 0; j < n; j += columns) {
            for (std::int64_t i = 0; i < m; i += rows) {
                tile(depth, a + i * depth, b + j * depth, product + i * stride + j, stride);
            }
        }
    }

    static void add(std::int64_t m, std::int64_t n, const T* product, std::int64_t stride, const Targets<T>& targets) {
        for (std::int64_t i = 0; i < m; ++i, product += stride) {
            for (std::size_t t = 0; t < targets.count; ++t) {
                T* to = targets.at[t] + i * targets.stride;
                const T sign = targets.sign[t];
                if (targets.add[t]) {
#pragma omp simd
                    for (std::int64_t j = 0; j < n; ++j) {
                        to[j] += sign * product[j];
                    }
                } else {
#pragma omp simd
                    for (std::int64_t j = 0; j < n; ++j) {
                        to[j] = sign * product[j];
                    }
                }
            }
        }
    }

    /// `count` neighbours in memory of the sum, `offset` numbers into its terms.
    template <std::size_t terms, std::int64_t count>
    [[gnu::always_inline]] static typename Lanes<T, count>::type sum_at(const Terms<T>& x, std::int64_t offset) {
        typename Lanes<T, count>::type sum = load<count>(x.at[0] + offset);
#pragma GCC unroll 8
        for (std::size_t t = 1; t < terms; ++t) {
            sum += x.sign[t] * load<count>(x.at[t] + offset);
        }
        return sum;
    }
    [[gnu::always_inline]] static T number_at(const Terms<T>& x, std::int64_t offset) {
        T sum = x.at[0][offset];
        for (std::size_t t = 1; t < x.count; ++t) {
            sum += x.sign[t] * x.at[t][offset];
        }
        return sum;
    }

    /// A whole panel, where neighbours on the side of C are neighbours in memory.
    template <std::size_t terms, std::int64_t wide>
    static void pack_along(const Terms<T>& x, std::int64_t offset, std::int64_t depth, T* panel) {
        constexpr std::int64_t count = wide < lanes ? wide : lanes;
        for (std::int64_t p = 0; p < depth; ++p, offset += x.down, panel += wide) {
#pragma GCC unroll 3
            for (std::int64_t i = 0; i < wide; i += count) {
                const auto sum = sum_at<terms, count>(x, offset + i);
                std::memcpy(panel + i, &sum, sizeof sum);
            }
        }
    }

    /// The same where neighbours in depth are neighbours in memory: sums are turned round in a buffer.
    template <std::size_t terms, std::int64_t wide>
    static void pack_across(const Terms<T>& x, std::int64_t offset, std::int64_t depth, T* panel) {
        constexpr std::int64_t span = 4 * lanes, item = sizeof(T), turned = 16 / item;
        constexpr std::int64_t high = wide < lanes ? wide : lanes;
        alignas(64) T sums[static_cast<std::size_t>(wide * span)];
        std::int64_t p = 0;
        for (; p + span <= depth; p += span) {
            for (std::int64_t i = 0; i < wide; ++i) {
#pragma GCC unroll 4
                for (std::int64_t q = 0; q < span; q += lanes) {
                    const auto sum = sum_at<terms, lanes>(x, offset + i * x.along + p + q);
                    std::memcpy(sums + i * span + q, &sum, sizeof sum);
                }
            }
            for (std::int64_t q = 0; q < span; q += turned) {
                for (std::int64_t i = 0; i < wide; i += high) {
                    typename Register<static_cast<std::size_t>(high * item)>::type
                        column[static_cast<std::size_t>(turned)];
                    turn<static_cast<std::size_t>(high * item), sizeof(T)>(
                        reinterpret_cast<const std::byte*>(sums + i * span + q), span * item, column);
#pragma GCC unroll 4
                    for (std::int64_t s = 0; s < turned; ++s) {
                        std::memcpy(panel + (p + q + s) * wide + i, &column[s], sizeof column[s]);
                    }
                }
            }
        }
        for (; p < depth; ++p) {
            for (std::int64_t i = 0; i < wide; ++i) {
                panel[p * wide + i] = number_at(x, offset + i * x.along + p);
            }
        }
    }

    template <std::size_t terms, std::int64_t wide>
    static void pack_all(const Terms<T>& x, std::int64_t outer, std::int64_t depth, T* panel) {
        for (std::int64_t begin = 0; begin < outer; begin += wide, panel += wide * depth) {
            const std::int64_t offset = begin * x.along, here = outer - begin;
            if (here >= wide && x.along == 1) {
                pack_along<terms, wide>(x, offset, depth, panel);
            } else if (here >= wide) {
                pack_across<terms, wide>(x, offset, depth, panel);
            } else {
                for (std::int64_t p = 0; p < depth; ++p) {
                    for (std::int64_t i = 0; i < wide; ++i) {
                        panel[p * wide + i] = i < here ? number_at(x, offset + i * x.along + p * x.down) : T{};
                    }
                }
            }
        }
    }

    template <std::int64_t wide> static void pack(const Terms<T>& x, std::int64_t outer, std::int64_t depth,
                                                  T* panels) {
        switch (x.count) {
            case 1:
                return pack_all<1, wide>(x, outer, depth, panels);
            case 2:
                return pack_all<2, wide>(x, outer, depth, panels);
            case 4:
                return pack_all<4, wide>(x, outer, depth, panels);
            default:
                return pack_all<8, wide>(x, outer, depth, panels);
        }
    }

    static constexpr StrassenSet<T> set{rows, columns, pack<rows>, pack<columns>, multiply, add};
};

}  // namespace
}  // namespace tilewise::kernel
