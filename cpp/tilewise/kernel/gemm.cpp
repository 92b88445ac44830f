// Cuts C into tiles and computes each with one single-threaded kernel: our own, BLAS, or plain loops.
//
//        threads = 4:      B       Each thread packs only what its tiles need, and no thread waits for another,
//                        [ | ]     which is as fast as the BLAS's own threads on large blocks. The BLAS itself
//             A  [---]   [0|1]  C  runs with one thread, and gets one tile a thread; for our own kernel there are
//                [   ]   [2|3]     more, which threads take in turn.
#include "tilewise/kernel/gemm.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <complex>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "tilewise/base/error.hpp"
#include "tilewise/base/names.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/blas.hpp"
#include "tilewise/kernel/gemm_loops.hpp"
#include "tilewise/kernel/gemm_tiled.hpp"
#include "tilewise/kernel/lapack.hpp"

namespace tilewise::kernel {
namespace {

constexpr std::int64_t int_max = std::numeric_limits<int>::max();

/// The same operand, beginning at (row, column) of the matrix that it stands for.
Operand at(const Operand& operand, std::int64_t row, std::int64_t column, std::size_t size) {
    const std::int64_t elements = operand.transposed ? column * operand.stride + row : row * operand.stride + column;
    return {operand.data + elements * static_cast<std::int64_t>(size), operand.stride, operand.transposed};
}

Product tile(const Product& whole, std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns) {
    const std::size_t size = size_of(whole.dtype);
    Product part = whole;
    part.m = rows;
    part.n = columns;
    part.a = at(whole.a, row, 0, size);
    part.b = at(whole.b, 0, column, size);
    if (whole.c != nullptr) {
        part.c = whole.c + (row * whole.c_stride + column) * static_cast<std::int64_t>(size);
    }
    return part;
}

Product slice_of_k(const Product& whole, std::int64_t begin, std::int64_t width) {
    const std::size_t size = size_of(whole.dtype);
    Product part = whole;
    part.k = width;
    part.a = at(whole.a, 0, begin, size);
    part.b = at(whole.b, begin, 0, size);
    part.accumulate = whole.accumulate || begin > 0;
    return part;
}

// BLAS takes 32-bit integers: tiles and slices are cut below that, a stride cannot be.
bool blas_takes(const Product& p) {
    return !is_integer(p.dtype) && p.a.stride <= int_max && p.b.stride <= int_max && p.c_stride <= int_max;
}

// Row-major C = A·B is column-major Cᵀ = Bᵀ·Aᵀ, and a row-major matrix is its column-major transpose: B goes first.
void blas_gemm(const Product& p) {
    const char b_form = p.b.transposed ? 'T' : 'N';
    const char a_form = p.a.transposed ? 'T' : 'N';
    const int m = lapack_int(p.n), n = lapack_int(p.m), k = lapack_int(p.k);
    // A leading dimension may not be less than a row, which it is for a matrix of one row that is never stepped over.
    const int ldb = lapack_int(std::max(p.b.stride, p.b.transposed ? p.k : p.n));
    const int lda = lapack_int(std::max(p.a.stride, p.a.transposed ? p.m : p.k));
    const int ldc = lapack_int(std::max(p.c_stride, p.n));
    const auto call = [&](auto zero, auto function) {
        using T = decltype(zero);
        const T alpha(1), beta(p.accumulate ? 1 : 0);
        function(&b_form, &a_form, &m, &n, &k, &alpha, p.b.data, &ldb, p.a.data, &lda, &beta, p.c, &ldc);
    };
    switch (p.dtype) {
        case Dtype::float32:
            return call(float{}, TILEWISE_BLAS(sgemm_));
        case Dtype::float64:
            return call(double{}, TILEWISE_BLAS(dgemm_));
        case Dtype::complex64:
            return call(std::complex<float>{}, TILEWISE_BLAS(cgemm_));
        case Dtype::complex128:
            return call(std::complex<double>{}, TILEWISE_BLAS(zgemm_));
        default:
            refuse_compute_type(p.dtype);
    }
}

/// Takes a workspace from a stock that lives as long as the process: fresh memory for each call would be touched for
/// the first time each time.
template <class T> class Lent {
public:
    Lent() {
        const std::lock_guard lock(mutex());
        if (!stock().empty()) {
            item_ = std::move(stock().back());
            stock().pop_back();
        } else {
            item_ = std::make_unique<T>();
        }
    }
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;
    ~Lent() {
        const std::lock_guard lock(mutex());
        stock().push_back(std::move(item_));
    }
    T& operator*() const { return *item_; }

private:
    static std::mutex& mutex() {
        static std::mutex one;
        return one;
    }
    static std::vector<std::unique_ptr<T>>& stock() {
        static std::vector<std::unique_ptr<T>> all;
        return all;
    }
    std::unique_ptr<T> item_;
};

/// `tiled`: by our own kernel; decided for the whole product, so that its bits do not depend on how it is cut.
void one_tile(const Product& p, Kernel kernel, bool tiled, const Between& between, std::int64_t slice) {
    const bool blas = kernel != Kernel::plain && blas_takes(p);
    const Lent<TiledGemm> tiled_gemm;
    // BLAS sums all of k in one go where C is small; in slices, rounding errors that all point one way stay few.
    const std::int64_t width = tiled && !between ? std::max<std::int64_t>(p.k, 1) : slice;
    if (p.k == 0 && !p.accumulate) {
        plain_gemm(p);  // an empty sum is zero
        return;
    }
    for (std::int64_t begin = 0; begin < p.k; begin += width) {
        const Product part = slice_of_k(p, begin, std::min(width, p.k - begin));
        if (tiled) {
            (*tiled_gemm)(part);
        } else if (blas) {
            blas_gemm(part);
        } else if (kernel != Kernel::plain && is_integer(p.dtype)) {
            integer_gemm(part);
        } else {
            plain_gemm(part);
        }
        if (between) {
            between(static_cast<double>(begin + part.k) / static_cast<double>(p.k));
        }
    }
}

/// Columns of C at `columns_border(0)`, `(1)`, … and as many rows: tiles that threads take in turn.
struct Cuts {
    std::int64_t rows, columns;
    std::int64_t column_unit = 1;  ///< borders between columns fall on multiples of it

    grid::Range row(std::int64_t index, std::int64_t m) const { return {m * index / rows, m * (index + 1) / rows}; }
    grid::Range column(std::int64_t index, std::int64_t n) const {
        const std::int64_t units = (n + column_unit - 1) / column_unit;
        const auto border = [&](std::int64_t i) { return std::min(n, units * i / columns * column_unit); };
        return {border(index), border(index + 1)};
    }
};

// Near-square tiles: the least of A and B to pack for each thread.
Cuts cuts_for(std::int64_t m, std::int64_t n, int threads) {
    Cuts best{1, threads};
    double least = std::numeric_limits<double>::infinity();
    for (int rows = 1; rows <= threads; ++rows) {
        if (threads % rows == 0) {
            const int columns = threads / rows;
            const double packed = static_cast<double>(m) / rows + static_cast<double>(n) / columns;
            if (packed < least) {
                least = packed;
                best = {rows, columns};
            }
        }
    }
    return best;
}

// Our own kernel packs B for so many columns at a time anyway, so that tiles as wide cost nothing; more of them than
// threads let a thread whose core is taken away for a while do less. Only rows are cut finer for that: what an element
// is does not depend on its tile.
Cuts cuts_for_tiles(std::int64_t m, std::int64_t n, int threads) {
    constexpr std::int64_t height = 1024, least_height = 192, tiles_each = 4;
    const std::int64_t columns = (n + tiled_gemm_columns - 1) / tiled_gemm_columns;
    const std::int64_t for_all = std::min((tiles_each * threads + columns - 1) / columns, m / least_height);
    return {std::max({std::int64_t{1}, m / height, for_all}), columns, tiled_gemm_columns};
}

}  // namespace

Product rows_of(const Product& whole, grid::Range rows) { return tile(whole, rows.begin, rows.size(), 0, whole.n); }

void gemm(const Product& product, int threads, Kernel kernel, const Between& between, std::int64_t slice) {
    if (product.m == 0 || product.n == 0) {
        return;
    }
    if (TILEWISE_BLAS(openblas_set_num_threads) != nullptr) {
        TILEWISE_BLAS(openblas_set_num_threads)(1);
    }
    const bool tiny =
        2.0 * static_cast<double>(product.m) * static_cast<double>(product.n) * static_cast<double>(product.k) < 4e6;
    const bool tiled = kernel == Kernel::fast && tiled_gemm_suits(product);
    const bool dynamic = !tiny && threads > 1 && tiled;
    const Cuts wanted = tiny      ? Cuts{1, 1}
                        : dynamic ? cuts_for_tiles(product.m, product.n, threads)
                                  : cuts_for(product.m, product.n, threads);
    // BLAS counts in 32 bits, so a side of 2³¹ or more is cut further.
    const Cuts cuts{std::max(wanted.rows, product.m / (int_max / 2) + 1),
                    std::max(wanted.columns, product.n / (int_max / 2) + 1), wanted.column_unit};
    const std::int64_t tiles = cuts.rows * cuts.columns;
    const int workers = tiny ? 1 : static_cast<int>(std::min<std::int64_t>(threads, tiles));
    std::atomic<std::int64_t> next = workers;  // each thread has one to begin with
    parallel(workers, [&](int thread) {
        for (std::int64_t index = thread; index < tiles; index = next++) {
            const grid::Range rows = cuts.row(index % cuts.rows, product.m),
                              columns = cuts.column(index / cuts.rows, product.n);
            if (rows.size() == 0 || columns.size() == 0) {
                continue;
            }
            Between mine;
            if (thread == 0 && between) {
                mine = [&](double of_tile) {
                    const auto before = static_cast<double>(std::min(tiles, next.load()) - workers);
                    between(std::clamp((before + of_tile * workers) / static_cast<double>(tiles), 0.0, 1.0));
                };
            }
            one_tile(tile(product, rows.begin, rows.size(), columns.begin, columns.size()), kernel, tiled, mine, slice);
        }
    });
}

Kernel kernel_named(std::string_view name) {
    constexpr std::array<std::string_view, 3> names{"fast", "blas", "plain"};
    return enum_named<Kernel>(names, name, "kernel");
}

std::string gemm_kernel_name(Kernel kernel, Dtype dtype) {
    const Product large{.dtype = dtype, .m = 4096, .n = 4096, .k = 4096, .a = {}, .b = {}};
    if (kernel == Kernel::plain) {
        return "plain loops";
    }
    if (kernel == Kernel::fast && tiled_gemm_suits(large)) {
        return std::string(tiled_gemm_name);
    }
    return is_integer(dtype) ? "tilewise integer tiles" : "BLAS " + blas_facts().kernel;
}

BlasFacts blas_facts() {
    BlasFacts facts{"unknown BLAS", "unknown"};
    if (TILEWISE_BLAS(openblas_get_config) != nullptr) {
        facts.library = TILEWISE_BLAS(openblas_get_config)();
    }
    if (TILEWISE_BLAS(openblas_get_corename) != nullptr) {
        facts.kernel = TILEWISE_BLAS(openblas_get_corename)();
    }
    return facts;
}

}  // namespace tilewise::kernel
