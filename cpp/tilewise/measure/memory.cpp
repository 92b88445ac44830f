// How fast memory, and each cache on the way there, can be read and written: by size, and by number of threads.
//
//      one buffer a rank    ┌─ to ─┬┈┬─ a ─┬┈┬─ b ─┐
//                           │0│1│2 │ │0│1│2│ │0│1│2│
//                           └──────┴┈┴─────┴┈┴─────┘
//
// Each thread has one piece of every array, at cache lines, which it is the first to touch. Arrays lie a few lines more
// than whole pages apart, so that what is read is not taken for what was just written.
#include "tilewise/measure/memory.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <string>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/error.hpp"
#include "tilewise/base/memory.hpp"
#include "tilewise/kernel/isa/versions.hpp"
#include "tilewise/measure/buffers.hpp"
#include "tilewise/measure/clock.hpp"
#include "tilewise/measure/measure.hpp"
#include "tilewise/measure/samples.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::measure {

namespace {

/// A register of so many bytes, and how many are filled before they are stored: two lines at least, since stores past
/// the caches want whole ones.
template <int bytes> struct Vector {
    static constexpr std::int64_t lanes = bytes / 8, in_turn = std::max(4, 128 / bytes);
    typedef double numbers __attribute__((vector_size(bytes), may_alias));
    typedef std::uint64_t words __attribute__((vector_size(bytes), may_alias));
};

/// One number, for those that are left.
template <> struct Vector<8> {
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
    const std::int64_t left = store_registers<Value, Stores, Vector<bytes>>(x, 0);
    Stores::end();
    store_registers<Value, ThroughCaches, Vector<8>>(x, left);
    return 0;
}

// Integers, as their addition takes one cycle: floating-point sums would need twice the registers to keep up with a
// first-level cache.
template <int bytes> TILEWISE_INLINE std::uint64_t read_all(const Arrays& x) {
    using R = Vector<bytes>;
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

namespace {

constexpr std::int64_t cache_line = 64, apart = 17 * cache_line;
constexpr std::int64_t worth_streaming = std::int64_t{1} << 20;  // bytes of an array: below, a cache is near
constexpr std::int64_t on_huge_pages = std::int64_t{4} << 20;    // a buffer of that size gets them
constexpr std::int64_t most_passes = 1'000'000;

/// The arrays of one rank, and each thread's part of them.
class HostArrays {
public:
    /// What the buffer needs.
    static std::int64_t buffer_bytes(std::int64_t bytes, int arrays) {
        return std::max(stride(bytes) * arrays, on_huge_pages);
    }

    HostArrays(std::int64_t bytes, int arrays, int threads)
        : stride_(stride(bytes)),
          buffer_(static_cast<std::size_t>(buffer_bytes(bytes, arrays))) {
        const std::int64_t numbers = bytes / 8, lines = numbers / 8;
        for (int thread = 0; thread < threads; ++thread) {
            const std::int64_t first = lines * thread / threads * 8;
            const std::int64_t end = thread + 1 < threads ? lines * (thread + 1) / threads * 8 : numbers;
            parts_.push_back({array(0) + first, nullptr, nullptr, end - first});
            Arrays& part = parts_.back();
            part.a = arrays > 1 ? array(1) + first : part.to;
            part.b = arrays > 2 ? array(2) + first : nullptr;
        }
        arrays_ = arrays;
    }

    const Arrays& part(int thread) const { return parts_[static_cast<std::size_t>(thread)]; }

    /// By the thread that will use it, so that it lies in the memory next to that.
    void touch(int thread) const {
        const Arrays& part = parts_[static_cast<std::size_t>(thread)];
        const std::int64_t first = part.to - array(0);
        for (int index = 0; index < arrays_; ++index) {
            std::fill_n(array(index) + first, part.count, 1.0 + index);
        }
    }

private:
    static std::int64_t stride(std::int64_t bytes) { return rounded_to_pages(bytes) + apart; }
    double* array(int index) const { return reinterpret_cast<double*>(buffer_.data() + index * stride_); }

    std::int64_t stride_;
    Buffer buffer_;
    std::vector<Arrays> parts_;
    int arrays_ = 0;
};

/// Does a pass `inner` times on all threads and ranks at once; keeps the sums, so that nothing can be left out.
class Passes {
public:
    Passes(const Context& context, const HostArrays& memory, int threads, double overhead)
        : context_(context),
          memory_(memory),
          threads_(threads),
          sums_(static_cast<std::size_t>(threads) * per_line),
          overhead_(overhead) {
        run_together(threads_, [&](int thread) { memory_.touch(thread); });
    }

    /// Seconds of one pass on this rank.
    double seconds(Pass pass, std::int64_t inner) {
        const double all = run_together(
            threads_,
            [&](int thread) {
                sums_[static_cast<std::size_t>(thread) * per_line] += pass(memory_.part(thread), inner);
            },
            [&] { meet_all(context_.comm); });
        return std::max(all + meet_all(context_.comm) - overhead_, 0.0) / static_cast<double>(inner);
    }

    /// The same by this thread alone, on its part, to tell how often it is to be done: roughly. Not collective.
    double alone(Pass pass) {
        constexpr double enough = 10e-6, interrupted = 1e-3;  // by another program, if it is not that long by itself
        double best = 0;
        for (std::int64_t inner = 1; inner <= 4096 && best * static_cast<double>(inner) < enough; inner *= 8) {
            best = std::numeric_limits<double>::infinity();
            for (int look = 0; look < 3; ++look) {
                const double begin = now();
                sums_[0] += pass(memory_.part(0), inner);
                const double seconds = now() - begin;
                best = std::min(best, seconds / static_cast<double>(inner));
                if (look == 1 && seconds > interrupted) {
                    break;
                }
            }
        }
        return best;
    }

private:
    static constexpr std::size_t per_line = 8;  // threads do not share the line that their sums are in

    const Context& context_;
    const HostArrays& memory_;
    int threads_;
    std::vector<std::uint64_t> sums_;
    double overhead_;
};

struct Choice {
    PassVariant variant;
    std::int64_t inner;
};

/// The way that is fastest in a short trial; what counts of each is its best, on the slowest rank.
Choice choose(const Context& context, Passes& passes, const std::vector<PassVariant>& variants) {
    constexpr int rounds = 3;
    constexpr double long_pass = 20e-3, clearly = 0.97;
    const double lasting = sample_seconds(context.comm), trial = lasting / 2;
    std::vector<std::int64_t> inner;
    std::vector<double> best(variants.size(), std::numeric_limits<double>::infinity());
    for (const PassVariant& variant : variants) {
        inner.push_back(repetitions(context.comm, passes.alone(variant.pass), trial, most_passes));
    }
    for (int round = 0; round < rounds; ++round) {
        for (std::size_t i = 0; i < variants.size(); ++i) {
            passes.seconds(variants[i].pass,
                           1);  // the caches then hold what this way leaves there, and not the one before
            best[i] = std::min(best[i], passes.seconds(variants[i].pass, inner[i]));
        }
        if (mpi::of_root(context.comm,
                         variants.size() == 1 || *std::min_element(best.begin(), best.end()) > long_pass)) {
            break;
        }
    }
    mpi::check(MPI_Allreduce(MPI_IN_PLACE, best.data(), static_cast<int>(best.size()), MPI_DOUBLE, MPI_MAX,
                             context.comm.get()),
               "MPI_Allreduce");
    std::size_t place = 0;  // the plain way, unless another is clearly faster: what is as fast would win now and then
    for (std::size_t i = 1; i < variants.size(); ++i) {
        place = best[i] < clearly * best[0] && best[i] < best[place] ? i : place;
    }
    return {variants[place], repetitions(context.comm, best[place], lasting, most_passes)};
}

std::string note_on(const PassVariant& variant) {
    return variant.stores == "streaming" ? "with stores past the caches, which was faster than through them"
           : variant.stores == "library" ? "by the C library, which was faster than our own loops"
                                         : "";
}

/// Why an array of this size cannot be shared out; empty where it can.
std::string cannot_share(const Point& point) {
    if (point.bytes % 8 != 0) {
        return std::to_string(point.bytes) + " bytes are not a whole number of float64";
    }
    if (point.bytes / cache_line < point.threads) {
        return "an array of " + std::to_string(point.bytes) + " bytes has fewer cache lines of " +
               std::to_string(cache_line) + " than there are threads, " + std::to_string(point.threads);
    }
    return "";
}

}  // namespace

Measurement memory(Context& context, const Point& point, const Stop& stop, const Clock& clock) {
    std::vector<PassVariant> variants;
    mpi::together(context.comm, [&] {
        variants = pass_variants(point.name);
        if (variants.empty()) {
            throw UsageError("memory has no operation '" + point.name + "': copy, triad, read or write");
        }
        if (point.bytes < 1 || point.threads < 1) {
            throw UsageError("memory: " + std::to_string(point.bytes) + " bytes and " + std::to_string(point.threads) +
                             " threads make no sense: at least 1 of each is expected");
        }
    });
    Measurement measured;
    measured.skipped = cannot_share(point);
    if (measured.skipped.empty()) {
        measured.skipped =
            lacks_host_memory(context.comm, HostArrays::buffer_bytes(point.bytes, arrays_of(point.name)));
    }
    if (!measured.skipped.empty()) {
        return measured;
    }
    if (point.bytes < worth_streaming) {
        std::erase_if(variants, [](const PassVariant& variant) { return variant.stores == "streaming"; });
    }
    std::unique_ptr<HostArrays> arrays;
    std::unique_ptr<Passes> passes;
    mpi::together(context.comm, [&] {
        arrays = std::make_unique<HostArrays>(point.bytes, arrays_of(point.name), point.threads);
        passes = std::make_unique<Passes>(context, *arrays, point.threads, clock.overhead);
    });
    const Choice choice = choose(context, *passes, variants);
    measured.inner = choice.inner;
    measured.series = take_samples(context.comm, stop, {"seconds"}, [&](int /*number*/) {
        return std::vector{passes->seconds(choice.variant.pass, choice.inner)};
    });
    if (const std::string note = note_on(choice.variant); !note.empty()) {
        measured.notes.push_back(note);
    }
    return measured;
}

}  // namespace tilewise::measure
