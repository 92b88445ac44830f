// Times products of one size and type, by one kernel or by several in turn: small ones many times in a row, large ones
// no oftener than time allows.
#include "tilewise/measure/compute.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <memory>
#include <thread>

#include "tilewise/kernel/fill.hpp"
#include "tilewise/kernel/product/gemm_tiled.hpp"
#include "tilewise/measure/buffers.hpp"
#include "tilewise/measure/clock.hpp"
#include "tilewise/measure/measure.hpp"
#include "tilewise/measure/samples.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::measure {
namespace {

constexpr std::int64_t most_repetitions = 100'000;
constexpr std::int64_t trial_size = 512;  // large enough to tell how long larger ones will take
constexpr double bearable = 2;            // times the seconds of a point: what takes longer is not begun

bool is_gemm_type(const std::optional<Dtype>& dtype) {
    return dtype && !is_integer(*dtype) && *dtype != Dtype::float16;
}

/// "0.5", "12", "2e-05"
std::string said(double seconds) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.2g", seconds);
    return text.data();
}

}  // namespace

SquareProduct::SquareProduct(std::int64_t size, Dtype dtype, int threads)
    : size_(size),
      dtype_(dtype),
      threads_(threads),
      a_(static_cast<std::size_t>(size * size) * size_of(dtype)),
      b_(a_.bytes()),
      c_(a_.bytes()) {
    const grid::Block all{{0, size}, {0, size}};
    kernel::fill(a_.data(), all, size, dtype, kernel::Fill::random, 1, threads);
    kernel::fill(b_.data(), all, size, dtype, kernel::Fill::random, 2, threads);
    kernel::fill(c_.data(), all, size, dtype, kernel::Fill::identity, 0, threads);
}

kernel::Product SquareProduct::product() const {
    return {.dtype = dtype_,
            .m = size_,
            .n = size_,
            .k = size_,
            .a = {a_.data(), size_, false},
            .b = {b_.data(), size_, false},
            .c = c_.data(),
            .c_stride = size_};
}

std::string_view SquareProduct::chosen() const { return kernel::tiled_gemm_suits(product()) ? "tiles" : "blas"; }

double SquareProduct::seconds(const Context& context, std::int64_t inner, kernel::Kernel kernel) const {
    const kernel::Product product = this->product();
    meet_all(context.comm);
    const double begin = now();
    for (std::int64_t i = 0; i < inner; ++i) {
        kernel::gemm(product, threads_, kernel);
    }
    meet_all(context.comm);
    return (now() - begin) / static_cast<double>(inner);
}

std::int64_t SquareProduct::bytes(std::int64_t size, Dtype dtype) {
    return 3 * size * size * static_cast<std::int64_t>(size_of(dtype));
}

double SquareProduct::flops() const {
    const auto n = static_cast<double>(size_);
    return (is_complex(dtype_) ? 8.0 : 2.0) * n * n * n;
}

Measurement compute(Context& context, const Point& point, const Stop& stop, const Clock& clock) {
    const std::optional<Dtype> dtype = dtype_named(point.dtype);
    std::vector<kernel::Kernel> kernels;
    mpi::together(context.comm, [&] {
        std::ranges::transform(point.kernels, std::back_inserter(kernels), kernel::kernel_named);
        if (point.name != "gemm" || point.size < 1 || point.threads < 1 || !is_gemm_type(dtype)) {
            throw UsageError("no such product: '" + point.name + "' of size " + std::to_string(point.size) + " in '" +
                             point.dtype + "' by " + std::to_string(point.threads) +
                             " threads; gemm in float32, float64, complex64 or complex128 can be measured");
        }
    });
    const std::vector<std::string> names = kernels.empty() ? std::vector<std::string>{"seconds"} : point.kernels;
    if (kernels.empty()) {
        kernels = {kernel::Kernel::fast};
    }
    Measurement measured;
    if (std::ranges::count(kernels, kernel::Kernel::tiles) > 0 && !kernel::tiled_gemm_takes(*dtype)) {
        measured.skipped = "there are no tiles for " + point.dtype + " and these instructions";
        return measured;
    }
    const std::int64_t most_rows = std::int64_t{1} << 27;  // whose squares times 48 bytes can still be counted
    measured.skipped = point.size > most_rows
                           ? "matrices of " + std::to_string(point.size) + " rows have more numbers than can be counted"
                           : lacks_host_memory(context.comm, SquareProduct::bytes(point.size, *dtype));
    if (!measured.skipped.empty()) {
        return measured;
    }
    const auto made = [&](std::int64_t size) {
        std::unique_ptr<SquareProduct> product;
        mpi::together(context.comm, [&] { product = std::make_unique<SquareProduct>(size, *dtype, point.threads); });
        return product;
    };
    auto product = made(std::min(point.size, trial_size));
    product->seconds(context);  // the kernel's workspaces are touched
    double once = mpi::of_root(context.comm, product->seconds(context));
    Stop until = stop;
    if (point.size > trial_size) {
        // What is too small for all threads may be computed by one: large ones get all of them, as far as there are
        // cores.
        const auto cores =
            std::min(static_cast<unsigned>(point.threads), std::max(std::thread::hardware_concurrency(), 1U));
        once *= std::pow(static_cast<double>(point.size) / static_cast<double>(trial_size), 3) / cores;
        if (once > bearable * stop.seconds) {
            measured.skipped = "a product would take about " + said(once) + " s, and there are " + said(stop.seconds) +
                               " s for all samples";
            return measured;
        }
        product = made(point.size);
        until.warmup = once > stop.seconds / 10 ? std::min(1, stop.warmup) : stop.warmup;
    }
    measured.chosen = product->chosen();
    measured.inner = repetitions(context.comm, once, sample_seconds(context.comm), most_repetitions);
    measured.series = take_samples(context.comm, until, names, [&](int /*number*/) {
        const double overhead = clock.overhead / static_cast<double>(measured.inner);
        std::vector<double> seconds;
        for (const kernel::Kernel kernel : kernels) {
            seconds.push_back(std::max(product->seconds(context, measured.inner, kernel) - overhead, 0.0));
        }
        return seconds;
    });
    return measured;
}

}  // namespace tilewise::measure
