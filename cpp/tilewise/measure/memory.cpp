// How fast memory, and each cache on the way there, can be read and written: by size, and by number of threads.
//
//      one buffer a rank    ┌─ to ─┬┈┬─ a ─┬┈┬─ b ─┐
//                           │0│1│2 │ │0│1│2│ │0│1│2│
//                           └──────┴┈┴─────┴┈┴─────┘
//
// Each thread has one piece of every array, at cache lines, which it is the first to touch. Arrays lie a few lines more
// than whole pages apart, so that what is read is not taken for what was just written.
#include <algorithm>
#include <limits>
#include <memory>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/error.hpp"
#include "tilewise/base/page.hpp"
#include "tilewise/measure/measure.hpp"
#include "tilewise/measure/memory_budget.hpp"
#include "tilewise/measure/memory_passes.hpp"
#include "tilewise/measure/samples.hpp"
#include "tilewise/measure/shared_start.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::measure {
namespace {

constexpr std::int64_t line = 64, apart = 17 * line;
constexpr std::int64_t worth_streaming = std::int64_t{1} << 20;  // bytes of an array: below, a cache is near
constexpr std::int64_t on_huge_pages = std::int64_t{4} << 20;    // a buffer of that size gets them
constexpr std::int64_t most_repetitions = 1'000'000;

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
        inner.push_back(repetitions(context.comm, passes.alone(variant.pass), trial, most_repetitions));
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
    return {variants[place], repetitions(context.comm, best[place], lasting, most_repetitions)};
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
    if (point.bytes / line < point.threads) {
        return "an array of " + std::to_string(point.bytes) + " bytes has fewer cache lines of " +
               std::to_string(line) + " than there are threads, " + std::to_string(point.threads);
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
