// Tests of what measures memory and arithmetic: passes do what they say, threads begin together, and figures are
// plausible.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/error.hpp"
#include "tilewise/kernel/fill.hpp"
#include "tilewise/kernel/product/gemm.hpp"
#include "tilewise/measure/ceilings.hpp"
#include "tilewise/measure/clock.hpp"
#include "tilewise/measure/compute.hpp"
#include "tilewise/measure/measure.hpp"
#include "tilewise/measure/memory.hpp"
#include "tilewise/mpi/together.hpp"

using namespace tilewise;
using namespace tilewise::measure;

namespace {

constexpr std::array operations{"copy", "triad", "read", "write"};
const Stop brief{.least = 5, .most = 10, .warmup = 1, .relative = 0.5, .seconds = 0.05};

/// Three arrays with a line to spare behind each, filled with numbers that are all different.
struct Memory {
    static constexpr std::int64_t spare = 8;
    std::int64_t count, stride;
    Buffer buffer;

    explicit Memory(std::int64_t numbers)
        : count(numbers),
          stride((numbers + spare + 7) / 8 * 8),
          buffer(static_cast<std::size_t>(3 * stride) * sizeof(double)) {
        for (std::int64_t i = 0; i < 3 * stride; ++i) {
            array(0)[i] = 0.25 * static_cast<double>(i % 1001) - 77;
        }
    }
    double* array(int index) const { return reinterpret_cast<double*>(buffer.data()) + index * stride; }
    Arrays arrays() const { return {array(0), array(1), array(2), count}; }
    std::vector<double> all() const { return {array(0), array(0) + 3 * stride}; }
};

Point memory_point(const char* name, std::int64_t bytes, int threads) {
    Point point;
    point.kind = "memory";
    point.name = name;
    point.bytes = bytes;
    point.threads = threads;
    return point;
}

Point gemm_point(std::int64_t size, const char* dtype, int threads) {
    Point point;
    point.kind = "compute";
    point.name = "gemm";
    point.size = size;
    point.dtype = dtype;
    point.threads = threads;
    return point;
}

struct World {
    mpi::Communicator comm{MPI_COMM_WORLD};
    Ledger ledger;
    Context context{comm, ledger, 1};
    Clock clock = look_at_clock();
};

void check_series(const World& world, const Measurement& found) {
    REQUIRE(found.series.size() == 1);
    const Series& series = found.series.front();
    CHECK(found.inner >= 1);
    CHECK(found.skipped.empty());
    if (world.comm.rank() == 0) {
        CHECK(series.name == "seconds");
        CHECK(std::ssize(series.samples) >= 3);
        CHECK(std::ssize(series.by_rank) == world.comm.size());
        CHECK(std::all_of(series.samples.begin(), series.samples.end(), [](double s) { return s > 0 && s < 10; }));
    } else {
        CHECK(series.samples.empty());
    }
}

/// One number after the other: the sum of bit patterns of what is read.
std::uint64_t reference_pass(std::string_view operation, const Arrays& x) {
    std::uint64_t sum = 0;
    for (std::int64_t i = 0; i < x.count; ++i) {
        if (operation == "read") {
            sum += std::bit_cast<std::uint64_t>(x.a[i]);
        } else {
            x.to[i] = operation == "copy" ? x.a[i] : operation == "triad" ? x.a[i] + 3.0 * x.b[i] : 1.5;
        }
    }
    return sum;
}

}  // namespace

TEST_CASE("every way to pass over memory does what plain loops do, and nothing behind the end") {
    for (const std::string_view operation : operations) {
        const auto variants = pass_variants(operation);
        REQUIRE_FALSE(variants.empty());
        CHECK(variants.front().stores == "plain");
        for (const PassVariant& variant : variants) {
            for (const std::int64_t count : {0, 1, 7, 8, 9, 31, 32, 33, 63, 64, 100, 4096, 4101}) {
                const Memory wanted(count), found(count);
                const std::uint64_t sum = reference_pass(operation, wanted.arrays());
                CAPTURE(operation);
                CAPTURE(variant.stores);
                CAPTURE(count);
                CHECK(variant.pass(found.arrays(), 3) == 3 * sum);
                if (operation == "write" && variant.stores == "library") {  // bytes of 1, in the same place
                    std::memset(wanted.array(0), 1, static_cast<std::size_t>(count) * sizeof(double));
                }
                CHECK((found.all() == wanted.all()));
            }
        }
    }
    CHECK(pass_variants("shuffle").empty());
}

TEST_CASE("threads work together, each on its own, again and again, and counts until the last is done") {
    for (const int threads : {1, 2, 5}) {
        std::vector<int> counts(static_cast<std::size_t>(threads));
        std::atomic<int> ready = 0;
        for (int round = 0; round < 50; ++round) {
            run_together(threads, [&](int thread) { ++counts[static_cast<std::size_t>(thread)]; }, [&] { ++ready; });
        }
        CHECK(ready == 50);
        CHECK((counts == std::vector<int>(static_cast<std::size_t>(threads), 50)));
        const double seconds = run_together(threads, [&](int thread) {
            std::this_thread::sleep_for(std::chrono::milliseconds(thread == threads - 1 ? 20 : 0));
        });
        CHECK(seconds >= 0.019);
    }
}

TEST_CASE("threads whose start fails say so, do no work, and still work afterwards") {
    std::atomic<int> worked = 0;
    const auto work = [&](int /*thread*/) { ++worked; };
    CHECK_THROWS_AS(run_together(3, work, [] { throw std::runtime_error("no start"); }), std::runtime_error);
    CHECK(worked == 0);
    run_together(3, work);
    CHECK(worked == 3);
}

TEST_CASE("memory is measured in every operation, size and number of threads, on all ranks") {
    World world;
    for (const char* operation : operations) {
        for (const int threads : {1, 2}) {
            for (const std::int64_t bytes : {std::int64_t{4096}, std::int64_t{100'008}, std::int64_t{3} << 20}) {
                CAPTURE(operation);
                CAPTURE(bytes);
                const Measurement found =
                    memory(world.context, memory_point(operation, bytes, threads), brief, world.clock);
                check_series(world, found);
                if (world.comm.rank() == 0) {
                    // The fastest sample: between the others a busy machine may have taken the core away.
                    const std::vector<double>& samples = found.series.front().samples;
                    const double rate = static_cast<double>(bytes) / *std::ranges::min_element(samples);
                    CHECK(rate > 1e6);
                    CHECK(rate < 5e13 * threads);  // what no register can move: a loop was left out
                }
            }
        }
    }
}

TEST_CASE("a small array is passed over many times in a sample, a large one once") {
    World world;
    const Measurement small = memory(world.context, memory_point("copy", 4096, 1), brief, world.clock);
    const Measurement large =
        memory(world.context, memory_point("copy", std::int64_t{64} << 20, 1), brief, world.clock);
    CHECK(small.inner > 100);
    CHECK(large.inner < 20);
}

TEST_CASE("memory refuses what makes no sense, alike on all ranks") {
    World world;
    const auto refuses = [&](const Point& point) {
        CHECK_THROWS_AS(memory(world.context, point, brief, world.clock), UsageError);
    };
    refuses(memory_point("shuffle", 4096, 1));
    refuses(memory_point("copy", 4096, 0));
    refuses(memory_point("copy", 0, 1));
}

TEST_CASE("products of every type are measured, and are right") {
    World world;
    for (const char* dtype : {"float32", "float64", "complex64", "complex128"}) {
        for (const int threads : {1, 2}) {
            check_series(world, compute(world.context, gemm_point(65, dtype, threads), brief, world.clock));
        }
    }
    Stop patient = brief;  // a product beyond the trial's size is not begun where it might take too long
    patient.seconds = 30;
    check_series(world, compute(world.context, gemm_point(600, "float32", 1), patient, world.clock));
    const std::int64_t n = 65;
    const SquareProduct product(n, Dtype::float64, 2);
    CHECK(product.seconds(world.context, 2) > 0);
    CHECK(product.flops() == 2.0 * 65 * 65 * 65);
    CHECK(SquareProduct(10, Dtype::complex64, 1).flops() == 8000);
    const auto bytes = static_cast<std::size_t>(n * n) * sizeof(double);
    const Buffer a(bytes), b(bytes);
    const grid::Block all{{0, n}, {0, n}};
    kernel::fill(a.data(), all, n, Dtype::float64, kernel::Fill::random, 1, 1);
    kernel::fill(b.data(), all, n, Dtype::float64, kernel::Fill::random, 2, 1);
    const auto at = [&](const std::byte* data, std::int64_t i, std::int64_t j) {
        return reinterpret_cast<const double*>(data)[i * n + j];
    };
    double furthest = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
            double sum = 0;
            for (std::int64_t k = 0; k < n; ++k) {
                sum += at(a.data(), i, k) * at(b.data(), k, j);
            }
            furthest = std::max(furthest, std::abs(sum - at(product.result(), i, j)));
        }
    }
    CHECK(furthest < 1e-10);
}

TEST_CASE("kernels are timed in turn, a series each, beside what jobs use") {
    World world;
    Point point = gemm_point(65, "float64", 1);
    point.kernels = {"blas", "plain"};
    const Measurement found = compute(world.context, point, brief, world.clock);
    CHECK(found.skipped.empty());
    CHECK((found.chosen == "tiles" || found.chosen == "blas"));
    if (world.comm.rank() == 0) {
        REQUIRE(found.series.size() == 2);
        CHECK(found.series[0].name == "blas");
        CHECK(found.series[1].name == "plain");
        CHECK(found.series[0].samples.size() == found.series[1].samples.size());
    }
    point.kernels = {"tiles"};
    point.dtype = "complex64";
    CHECK(compute(world.context, point, brief, world.clock).skipped.find("no tiles for complex64") !=
          std::string::npos);
    point.kernels = {"quick"};
    CHECK_THROWS_AS(compute(world.context, point, brief, world.clock), UsageError);
}

TEST_CASE("a product that takes far longer than there is time is skipped, with the reason") {
    World world;
    Stop none = brief;
    none.seconds = 1e-5;
    const Measurement found = compute(world.context, gemm_point(3000, "float64", 1), none, world.clock);
    CHECK(found.series.empty());
    CHECK(found.skipped.find("would take about") != std::string::npos);
}

TEST_CASE("compute refuses what is no product, alike on all ranks") {
    World world;
    const auto refuses = [&](Point point) {
        CHECK_THROWS_AS(compute(world.context, point, brief, world.clock), UsageError);
    };
    refuses(gemm_point(64, "int64", 1));
    refuses(gemm_point(64, "float16", 1));
    refuses(gemm_point(64, "number", 1));
    refuses(gemm_point(0, "float64", 1));
    refuses(gemm_point(64, "float64", 0));
    Point other = gemm_point(64, "float64", 1);
    other.name = "lu";
    refuses(other);
}

TEST_CASE("the rates that records refer to are the same on every rank, and copy what they time") {
    World world;
    constexpr std::int64_t bytes = (std::int64_t{2} << 20) + 40;
    const Buffer from(bytes), to(bytes);
    std::fill_n(from.data(), bytes, std::byte{7});
    const auto same = [&](double rate) {
        double least = rate, most = rate;
        MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_DOUBLE, MPI_MIN, world.comm.get());
        MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_DOUBLE, MPI_MAX, world.comm.get());
        CHECK(least == most);
        CHECK(least > 0);
    };
    same(copy_rate(world.context, from.data(), to.data(), bytes, 0.01));
    CHECK(to.data()[bytes / 64 * 64 - 1] == std::byte{7});
    same(copy_rate(world.context, from.data(), to.data(), 0, 0.01) + 1);  // nothing to copy: 0, and no division by it
    same(peak(world.context, Dtype::complex64));
    CHECK(peak(world.context, Dtype::int64) == 0);
}
