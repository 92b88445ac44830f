// Loops over whole registers, several in turn; what is left at the end goes number by number.
#include "tilewise/measure/memory_passes.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <string>

#include "tilewise/kernel/isa/versions.hpp"

namespace tilewise::measure {
namespace {

/// A register of so many bytes, and how many are filled before they are stored: two lines at least, since stores past
/// the caches want whole ones.
template <int bytes> struct Register {
    static constexpr std::int64_t lanes = bytes / 8, in_turn = std::max(4, 128 / bytes);
    typedef double numbers __attribute__((vector_size(bytes), may_alias));
    typedef std::uint64_t words __attribute__((vector_size(bytes), may_alias));
};

/// One number, for those that are left.
template <> struct Register<8> {
    static constexpr std::int64_t lanes = 1, in_turn = 1;
    typedef double numbers;
};

struct Copied {
    template <class R> TILEWISE_INLINE static void fill(typename R::numbers& value, const Arrays& x, std::int64_t i) {
        value = reinterpret_cast<const typename R::numbers*>(x.a)[i];
    }
};

struct Triad {
    template <class R> TILEWISE_INLINE static void fill(typename R::numbers& value, const Arrays& x, std::int64_t i) {
        value = reinterpret_cast<const typename R::numbers*>(x.a)[i] +
                triad_factor * reinterpret_cast<const typename R::numbers*>(x.b)[i];
    }
};

struct Constant {
    template <class R> TILEWISE_INLINE static void fill(typename R::numbers& value, const Arrays&, std::int64_t) {
        value = typename R::numbers{} + written_value;
    }
};

struct ThroughCaches {
    template <class V> TILEWISE_INLINE static void store(V& to, const V& value) { to = value; }
    TILEWISE_INLINE static void end() {}
};

#if defined(__x86_64__)
// Stores that fill a line at once save its way from memory into the cache.
struct PastCaches {
    template <class V> TILEWISE_INLINE static void store(V& to, const V& value) {
#if defined(__clang__)
        __builtin_nontemporal_store(value, &to);
#else
        if constexpr (sizeof(V) <= 16) {
            asm("movntpd %1, %0" : "=m"(to) : "x"(value));
        } else {
            asm("vmovntpd %1, %0" : "=m"(to) : "v"(value));
        }
#endif
    }
    TILEWISE_INLINE static void end() { __builtin_ia32_sfence(); }
};
#endif

/// Fills registers from number `first` on, and returns the first number that is left.
template <class Value, class Stores, class R>
TILEWISE_INLINE std::int64_t store_registers(const Arrays& x, std::int64_t first) {
    auto* to = reinterpret_cast<typename R::numbers*>(x.to);
    std::int64_t i = first / R::lanes;
    for (; (i + R::in_turn) * R::lanes <= x.count; i += R::in_turn) {
        typename R::numbers turn[R::in_turn];
        for (std::int64_t k = 0; k < R::in_turn; ++k) {
            Value::template fill<R>(turn[k], x, i + k);
        }
        for (std::int64_t k = 0; k < R::in_turn; ++k) {
            Stores::store(to[i + k], turn[k]);
        }
    }
    return i * R::lanes;
}

template <class Value, class Stores, int bytes> TILEWISE_INLINE std::uint64_t store_all(const Arrays& x) {
    const std::int64_t left = store_registers<Value, Stores, Register<bytes>>(x, 0);
    Stores::end();
    store_registers<Value, ThroughCaches, Register<8>>(x, left);
    return 0;
}

// Integers, as their addition takes one cycle: floating-point sums would need twice the registers to keep up with a
// first-level cache.
template <int bytes> TILEWISE_INLINE std::uint64_t read_all(const Arrays& x) {
    using R = Register<bytes>;
    using V = typename R::words;
    constexpr std::int64_t in_turn = 4;
    const auto* a = reinterpret_cast<const V*>(x.a);
    const std::int64_t registers = x.count / (R::lanes * in_turn) * in_turn;
    V p{}, q{}, r{}, s{};
    for (std::int64_t i = 0; i < registers; i += in_turn) {
        p += a[i];
        q += a[i + 1];
        r += a[i + 2];
        s += a[i + 3];
    }
    p += q + r + s;
    std::uint64_t sum = 0;
    for (std::int64_t k = 0; k < R::lanes; ++k) {
        sum += p[k];
    }
    for (std::int64_t i = registers * R::lanes; i < x.count; ++i) {
        sum += std::bit_cast<std::uint64_t>(x.a[i]);
    }
    return sum;
}

TILEWISE_INLINE std::uint64_t copy_library(const Arrays& x) {
    std::memcpy(x.to, x.a, static_cast<std::size_t>(x.count) * sizeof(double));
    return 0;
}

TILEWISE_INLINE std::uint64_t write_library(const Arrays& x) {
    std::memset(x.to, 1, static_cast<std::size_t>(x.count) * sizeof(double));
    return 0;
}

/// The pass so many times: a call through a pointer takes as long as a first-level cache does for 2 KiB.
template <auto pass> TILEWISE_INLINE std::uint64_t again(const Arrays& x, std::int64_t times) {
    std::uint64_t sum = 0;
    for (std::int64_t time = 0; time < times; ++time) {
        sum += pass(x);
        asm volatile("" : : : "memory");  // has the compiler do each of them
    }
    return sum;
}

/// The version of the set in use.
template <auto narrow, auto wide, auto widest> std::uint64_t sized(const Arrays& x, std::int64_t times) {
    return kernel::in_widths<again<narrow>, again<wide>, again<widest>>(x, times);
}

template <class Value, class Stores>
constexpr Pass stores = sized<store_all<Value, Stores, 16>, store_all<Value, Stores, 32>, store_all<Value, Stores, 64>>;

}  // namespace

std::vector<PassVariant> pass_variants(std::string_view operation) {
    std::vector<PassVariant> variants;
    if (operation == "copy") {
        variants = {{"plain", stores<Copied, ThroughCaches>}, {"library", again<copy_library>}};
    } else if (operation == "triad") {
        variants = {{"plain", stores<Triad, ThroughCaches>}};
    } else if (operation == "read") {
        variants = {{"plain", sized<read_all<16>, read_all<32>, read_all<64>>}};
    } else if (operation == "write") {
        variants = {{"plain", stores<Constant, ThroughCaches>}, {"library", again<write_library>}};
    }
#if defined(__x86_64__)
    if (operation == "copy") {
        variants.push_back({"streaming", stores<Copied, PastCaches>});
    } else if (operation == "triad") {
        variants.push_back({"streaming", stores<Triad, PastCaches>});
    } else if (operation == "write") {
        variants.push_back({"streaming", stores<Constant, PastCaches>});
    }
#endif
#if defined(TILEWISE_VERSIONS)
    if (operation == "triad") {  // from a third-level cache, narrower loads may bring a tenth more
        constexpr auto narrower = store_all<Triad, ThroughCaches, 32>;
        variants.push_back({"plain", sized<store_all<Triad, ThroughCaches, 16>, narrower, narrower>});
    }
#endif
    return variants;
}

int arrays_of(std::string_view operation) { return operation == "triad" ? 3 : operation == "copy" ? 2 : 1; }

}  // namespace tilewise::measure
