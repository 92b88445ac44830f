// Gives each thread parts of a product, and each part to one single-threaded kernel: our own, BLAS, or plain loops.
//
//        threads = 4:      B       Each thread packs only what its tiles need, and no thread waits for another,
//                        [ | ]     which is as fast as the BLAS's own threads on large blocks. The BLAS itself
//             A  [---]   [0|1]  C  runs with one thread, and gets one tile a thread; for our own kernel there are
//                [   ]   [2|3]     more, which threads take in turn.
//
//        small C:       [ 0 ]      Where C is too small for that, k is cut into pieces, each with a C of its own, and
//                       [ 1 ]      these are added in their sequence. How many there are depends on the shape alone.
//             A [0|1|2] [ 2 ]  B
//
// Design: docs/design/products.md
#include "tilewise/kernel/product/gemm.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <complex>
#include <cstdint>
#include <limits>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/error.hpp"
#include "tilewise/base/names.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/base/work.hpp"
#include "tilewise/kernel/factor/lapack.hpp"
#include "tilewise/kernel/lent.hpp"
#include "tilewise/kernel/product/gemm_tiled.hpp"
#include "tilewise/kernel/product/thin.hpp"

namespace tilewise::kernel {
namespace {

constexpr std::int64_t int_max = std::numeric_limits<int>::max();
constexpr std::int64_t outer_product = 64;      // so small is k where reading A and B is little beside writing C
constexpr std::int64_t least_tile = 192 * 192;  // elements of C that are work enough for a thread

// Strassen's product does what is too small for it as `fast` does.
bool is_fast(Kernel kernel) { return kernel != Kernel::blas && kernel != Kernel::plain; }

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

/// `tiled`: by our own kernel; decided for the whole product, so that its bits do not depend on how it is cut.
void one_tile(const Product& p, Kernel kernel, bool tiled, const Between& between, std::int64_t slice) {
    const bool blas = kernel != Kernel::plain && blas_takes(p);
    const Lent<TiledGemm> tiled_gemm;
    // BLAS sums all of k in one go where C is small; in slices, rounding errors that all point one way stay few.
    const auto width = [&](std::int64_t begin) {
        return !tiled ? std::min(slice, p.k - begin) : between ? tiled_gemm_slice(p.dtype, slice, p.k - begin) : p.k;
    };
    if (p.k == 0 && !p.accumulate) {
        plain_gemm(p);  // an empty sum is zero
        return;
    }
    for (std::int64_t begin = 0, steps = 0; begin < p.k; begin += steps) {
        steps = width(begin);
        const Product part = slice_of_k(p, begin, steps);
        if (tiled) {
            (*tiled_gemm)(part);
        } else if (blas) {
            blas_gemm(part);
        } else {
            plain_gemm(part);
        }
        if (between) {
            between(static_cast<double>(begin + part.k) / static_cast<double>(p.k));
        }
    }
}

/// C in tiles, which threads take in turn.
void by_tiles(const Product& product, int threads, Kernel kernel, bool tiled, const Between& between,
              std::int64_t slice) {
    const bool tiny =
        2.0 * static_cast<double>(product.m) * static_cast<double>(product.n) * static_cast<double>(product.k) < 4e6;
    const bool dynamic = !tiny && threads > 1 && tiled;
    // Where k is small, C is what takes time: each thread writes rows of its own.
    const Cuts wanted = tiny                         ? Cuts{1, 1}
                        : dynamic                    ? tiled_gemm_cuts(product, threads)
                        : product.k <= outer_product ? Cuts{std::min<std::int64_t>(threads, product.m), 1}
                                                     : cuts_for(product.m, product.n, threads);
    // BLAS counts in 32 bits, so a side of 2³¹ or more is cut further.
    const Cuts cuts{std::max(wanted.rows, product.m / (int_max / 2) + 1),
                    std::max(wanted.columns, product.n / (int_max / 2) + 1), wanted.row_unit, wanted.column_unit};
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
            one_tile(tile_of(product, rows, columns), kernel, tiled, mine, slice);
        }
    });
}

/// C = the first + the others, in their sequence.
template <class T> void add_pieces(const Product& c, const T* others, std::int64_t count, int threads) {
    const std::int64_t size = c.m * c.n;
    parallel_ranges(size * count < (1 << 20) ? 1 : threads, c.m, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t i = begin; i < end; ++i) {
            T* row = reinterpret_cast<T*>(c.c) + i * c.c_stride;
            for (std::int64_t piece = 0; piece < count; ++piece) {
                const T* other = others + piece * size + i * c.n;
                for (std::int64_t j = 0; j < c.n; ++j) {
                    row[j] += other[j];
                }
            }
        }
    });
}

/// k in `pieces`, which threads take in turn. The first is computed in C, the others each beside it.
void by_pieces(const Product& product, std::int64_t pieces, int threads, const Between& between,
               const std::function<void(const Product& piece, int threads)>& compute) {
    const std::size_t bytes = static_cast<std::size_t>(product.m * product.n) * size_of(product.dtype);
    const Lent<Buffer> lent;
    Buffer& others = *lent;
    others.grow(static_cast<std::size_t>(pieces - 1) * bytes);
    const int threads_each = std::max(1, threads / static_cast<int>(pieces));
    std::atomic<std::int64_t> done = 0;
    parallel_tasks(threads, pieces, [&](std::int64_t index, int thread) {
        const std::int64_t begin = product.k * index / pieces, end = product.k * (index + 1) / pieces;
        Product piece = slice_of_k(product, begin, end - begin);
        if (index > 0) {
            piece.c = others.data() + static_cast<std::size_t>(index - 1) * bytes;
            piece.c_stride = product.n;
            piece.accumulate = false;
        }
        compute(piece, threads_each);
        const std::int64_t now = ++done;
        if (thread == 0 && between) {
            between(static_cast<double>(now) / static_cast<double>(pieces));
        }
    });
    // Whole numbers may wrap.
    with_compute_type(product.dtype == Dtype::int64 ? Dtype::uint64 : product.dtype, [&](auto tag) {
        add_pieces(product, reinterpret_cast<const typename decltype(tag)::type*>(others.data()), pieces - 1, threads);
    });
    if (between) {
        between(1);
    }
}

template <class T> T element(const Operand& operand, std::int64_t row, std::int64_t column) {
    const auto* data = reinterpret_cast<const T*>(operand.data);
    return operand.transposed ? data[column * operand.stride + row] : data[row * operand.stride + column];
}

}  // namespace

void plain_gemm(const Product& p) {
    const Dtype dtype = p.dtype == Dtype::int64 ? Dtype::uint64 : p.dtype;  // the same bits, and it may wrap
    with_compute_type(dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        for (std::int64_t i = 0; i < p.m; ++i) {
            T* c_row = reinterpret_cast<T*>(p.c) + i * p.c_stride;
            if (!p.accumulate) {
                std::fill(c_row, c_row + p.n, T{});
            }
            for (std::int64_t l = 0; l < p.k; ++l) {
                const T factor = element<T>(p.a, i, l);
                for (std::int64_t j = 0; j < p.n; ++j) {
                    c_row[j] += factor * element<T>(p.b, l, j);
                }
            }
        }
    });
}

double operations(const Product& p) {
    const double each = p.dtype == Dtype::complex64 || p.dtype == Dtype::complex128 ? 8 : 2;
    return each * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
}

double bytes_moved(const Product& p) {
    const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n), k = static_cast<double>(p.k);
    return static_cast<double>(size_of(p.dtype)) * (m * k + k * n + (p.accumulate ? 2 : 1) * m * n);
}

/// Tells a simulator, which lets messages move on between slices as they would.
static bool stands_in(const Product& p, const Between& between, std::int64_t slice) {
    const std::int64_t slices = is_simulated && between ? std::max<std::int64_t>(1, p.k / slice) : 1;
    const auto share = 1 / static_cast<double>(slices);
    bool undone = false;
    for (std::int64_t done = 1; done <= slices; ++done) {
        undone = stood_in_for(operations(p) * share, bytes_moved(p) * share);
        if (undone && between) {
            between(static_cast<double>(done) * share);
        }
    }
    return undone;
}

Product rows_of(const Product& whole, grid::Range rows) { return tile_of(whole, rows, {0, whole.n}); }

Product part_of(const Product& whole, const grid::Block& block) { return tile_of(whole, block.rows, block.columns); }

void gemm(const Product& product, int threads, Kernel kernel, const Between& between, std::int64_t slice) {
    if (product.m == 0 || product.n == 0 || stands_in(product, between, slice)) {
        return;
    }
    if (TILEWISE_BLAS(openblas_set_num_threads) != nullptr) {
        TILEWISE_BLAS(openblas_set_num_threads)(1);
    }
    // All is decided for the whole product, so that its bits do not depend on how threads share it out.
    const bool thin = is_fast(kernel) && thin_gemm_suits(product);
    const bool tiled = takes_tiles(kernel, product);
    const std::int64_t parts = thin ? thin_gemm_parts(product) : product.m * product.n / least_tile;
    const auto compute = [&](const Product& part, int its_threads, const Between& its_between) {
        thin ? thin_gemm(part, its_threads, its_between)
             : by_tiles(part, its_threads, kernel, tiled, its_between, slice);
    };
    const std::int64_t pieces = kernel == Kernel::plain ? 1 : pieces_of_k(parts, product.k);
    if (pieces > 1) {
        by_pieces(product, pieces, threads, between,
                  [&](const Product& piece, int its_threads) { compute(piece, its_threads, {}); });
    } else {
        compute(product, threads, between);
    }
}

Kernel kernel_named(std::string_view name) {
    constexpr std::array<std::string_view, 5> names{"fast", "tiles", "blas", "plain", "strassen"};
    return enum_named<Kernel>(names, name, "kernel");
}

bool takes_tiles(Kernel kernel, const Product& p) {
    if (is_integer(p.dtype)) {
        return kernel != Kernel::plain;
    }
    return kernel == Kernel::tiles ? tiled_gemm_takes(p.dtype) : is_fast(kernel) && tiled_gemm_suits(p);
}

std::string gemm_kernel_name(Kernel kernel, Dtype dtype) {
    const Product large{.dtype = dtype, .m = 4096, .n = 4096, .k = 4096, .a = {}, .b = {}};
    if (kernel == Kernel::plain) {
        return "plain loops";
    }
    return takes_tiles(kernel, large) ? std::string(tiled_gemm_name()) : "BLAS " + blas_facts().kernel;
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
