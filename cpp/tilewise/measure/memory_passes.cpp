// Loops over whole registers, several in turn; what is left at the end goes number by number.
#include "tilewise/measure/memory_passes.hpp"

#include <bit>
#include <cstddef>
#include <cstring>
#include <string>

#include "tilewise/kernel/versions.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tilewise::measure {
namespace {

constexpr std::int64_t per_line = 8, in_turn = 4;

/// A register of so many bytes.
template <int bytes> struct Register {
    static constexpr std::int64_t lanes = bytes / 8;
    typedef double numbers __attribute__((vector_size(bytes), may_alias));
    typedef std::uint64_t words __attribute__((vector_size(bytes), may_alias));
    /// How many there are in turns in so many numbers.
    static constexpr std::int64_t turns(std::int64_t count) { return count / (lanes * in_turn) * in_turn; }
};

std::int64_t in_lines(std::int64_t count) { return count / per_line; }

std::uint64_t finish_copy(const Arrays& x, std::int64_t from) {
    for (std::int64_t i = from; i < x.count; ++i) {
        x.to[i] = x.a[i];
    }
    return 0;
}

std::uint64_t finish_triad(const Arrays& x, std::int64_t from) {
    for (std::int64_t i = from; i < x.count; ++i) {
        x.to[i] = x.a[i] + triad_factor * x.b[i];
    }
    return 0;
}

std::uint64_t finish_write(const Arrays& x, std::int64_t from) {
    for (std::int64_t i = from; i < x.count; ++i) {
        x.to[i] = written_value;
    }
    return 0;
}

std::uint64_t finish_read(const Arrays& x, std::int64_t from) {
    std::uint64_t sum = 0;
    for (std::int64_t i = from; i < x.count; ++i) {
        sum += std::bit_cast<std::uint64_t>(x.a[i]);
    }
    return sum;
}

template <int bytes> TILEWISE_INLINE std::uint64_t copy_plain(const Arrays& x) {
    using R = Register<bytes>;
    using V = typename R::numbers;
    auto* to = reinterpret_cast<V*>(x.to);
    const auto* a = reinterpret_cast<const V*>(x.a);
    const std::int64_t registers = R::turns(x.count);
    for (std::int64_t i = 0; i < registers; i += in_turn) {
        const V p = a[i], q = a[i + 1], r = a[i + 2], s = a[i + 3];
        to[i] = p;
        to[i + 1] = q;
        to[i + 2] = r;
        to[i + 3] = s;
    }
    return finish_copy(x, registers * R::lanes);
}

template <int bytes> TILEWISE_INLINE std::uint64_t triad_plain(const Arrays& x) {
    using R = Register<bytes>;
    using V = typename R::numbers;
    auto* to = reinterpret_cast<V*>(x.to);
    const auto* a = reinterpret_cast<const V*>(x.a);
    const auto* b = reinterpret_cast<const V*>(x.b);
    const std::int64_t registers = R::turns(x.count);
    for (std::int64_t i = 0; i < registers; i += 2) {
        const V p = a[i] + triad_factor * b[i], q = a[i + 1] + triad_factor * b[i + 1];
        to[i] = p;
        to[i + 1] = q;
    }
    return finish_triad(x, registers * R::lanes);
}

// Integers, as their addition takes one cycle: floating-point sums would need twice the registers to keep up with a
// first-level cache.
template <int bytes> TILEWISE_INLINE std::uint64_t read_plain(const Arrays& x) {
    using R = Register<bytes>;
    using V = typename R::words;
    const auto* a = reinterpret_cast<const V*>(x.a);
    const std::int64_t registers = R::turns(x.count);
    V p{}, q{}, r{}, s{};
    for (std::int64_t i = 0; i < registers; i += in_turn) {
        p += a[i];
        q += a[i + 1];
        r += a[i + 2];
        s += a[i + 3];
    }
    p += q + r + s;
    std::uint64_t sum = finish_read(x, registers * R::lanes);
    for (std::int64_t k = 0; k < R::lanes; ++k) {
        sum += p[k];
    }
    return sum;
}

template <int bytes> TILEWISE_INLINE std::uint64_t write_plain(const Arrays& x) {
    using R = Register<bytes>;
    using V = typename R::numbers;
    auto* to = reinterpret_cast<V*>(x.to);
    const V value = V{} + written_value;
    const std::int64_t registers = R::turns(x.count);
    for (std::int64_t i = 0; i < registers; i += in_turn) {
        to[i] = value;
        to[i + 1] = value;
        to[i + 2] = value;
        to[i + 3] = value;
    }
    return finish_write(x, registers * R::lanes);
}

std::uint64_t copy_library(const Arrays& x) {
    std::memcpy(x.to, x.a, static_cast<std::size_t>(x.count) * sizeof(double));
    return 0;
}

std::uint64_t write_library(const Arrays& x) {
    std::memset(x.to, 1, static_cast<std::size_t>(x.count) * sizeof(double));
    return 0;
}

#if defined(__x86_64__)
// Stores that fill a line at once save its way from memory into the cache. In 16 bytes each, which every processor of
// this kind has, and in 64, which copy another tenth faster where there are such registers.
std::uint64_t copy_streaming(const Arrays& x) {
    const std::int64_t whole = in_lines(x.count) * per_line;
    for (std::int64_t i = 0; i < whole; i += 2) {
        _mm_stream_pd(x.to + i, _mm_load_pd(x.a + i));
    }
    _mm_sfence();
    return finish_copy(x, whole);
}

std::uint64_t triad_streaming(const Arrays& x) {
    const std::int64_t whole = in_lines(x.count) * per_line;
    const __m128d factor = _mm_set1_pd(triad_factor);
    for (std::int64_t i = 0; i < whole; i += 2) {
        _mm_stream_pd(x.to + i, _mm_add_pd(_mm_load_pd(x.a + i), _mm_mul_pd(factor, _mm_load_pd(x.b + i))));
    }
    _mm_sfence();
    return finish_triad(x, whole);
}

std::uint64_t write_streaming(const Arrays& x) {
    const std::int64_t whole = in_lines(x.count) * per_line;
    const __m128d value = _mm_set1_pd(written_value);
    for (std::int64_t i = 0; i < whole; i += 2) {
        _mm_stream_pd(x.to + i, value);
    }
    _mm_sfence();
    return finish_write(x, whole);
}

[[gnu::target("avx512f")]] std::uint64_t copy_streaming_64(const Arrays& x) {
    const std::int64_t whole = in_lines(x.count) * per_line;
    for (std::int64_t i = 0; i < whole; i += per_line) {
        _mm512_stream_pd(x.to + i, _mm512_load_pd(x.a + i));
    }
    _mm_sfence();
    return finish_copy(x, whole);
}

[[gnu::target("avx512f")]] std::uint64_t triad_streaming_64(const Arrays& x) {
    const std::int64_t whole = in_lines(x.count) * per_line;
    const __m512d factor = _mm512_set1_pd(triad_factor);
    for (std::int64_t i = 0; i < whole; i += per_line) {
        _mm512_stream_pd(x.to + i,
                         _mm512_add_pd(_mm512_load_pd(x.a + i), _mm512_mul_pd(factor, _mm512_load_pd(x.b + i))));
    }
    _mm_sfence();
    return finish_triad(x, whole);
}
#endif

}  // namespace

std::vector<PassVariant> pass_variants(std::string_view operation, [[maybe_unused]] bool narrow) {
    std::vector<PassVariant> variants;
    if (operation == "copy") {
        variants = {{"plain", kernel::in_widths<copy_plain<16>, copy_plain<32>, copy_plain<64>>},
                    {"library", copy_library}};
    } else if (operation == "triad") {
        variants = {{"plain", kernel::in_widths<triad_plain<16>, triad_plain<32>, triad_plain<64>>}};
    } else if (operation == "read") {
        variants = {{"plain", kernel::in_widths<read_plain<16>, read_plain<32>, read_plain<64>>}};
    } else if (operation == "write") {
        variants = {{"plain", kernel::in_widths<write_plain<16>, write_plain<32>, write_plain<64>>},
                    {"library", write_library}};
    }
#if defined(__x86_64__)
    const bool wide = kernel::backend().versions == kernel::Instructions::avx512;
    if (operation == "copy" && (narrow || !wide)) {
        variants.push_back({"streaming", copy_streaming});
    } else if (operation == "triad" && (narrow || !wide)) {
        variants.push_back({"streaming", triad_streaming});
    } else if (operation == "write") {
        variants.push_back({"streaming", write_streaming});
    }
    if (operation == "copy" && wide) {
        variants.push_back({"streaming", copy_streaming_64});
    } else if (operation == "triad" && wide) {
        variants.push_back({"streaming", triad_streaming_64});
    }
#endif
#if defined(TILEWISE_VERSIONS)
    if (operation == "triad" && wide) {  // from a third-level cache, narrower loads may bring a tenth more
        variants.push_back({"plain", kernel::in_avx2<triad_plain<32>, const Arrays&>});
    }
#endif
    return variants;
}

int arrays_of(std::string_view operation) { return operation == "triad" ? 3 : operation == "copy" ? 2 : 1; }

}  // namespace tilewise::measure
