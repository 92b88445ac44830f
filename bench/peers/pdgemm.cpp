// ScaLAPACK's pdgemm, timed: pdgemm N P Q BLOCK WARMUP RUNS prints one JSON line with the seconds of every run.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <mpi.h>

extern "C" {
void Cblacs_get(int context, int what, int* value);
void Cblacs_gridinit(int* context, const char* order, int rows, int columns);
void Cblacs_gridinfo(int context, int* rows, int* columns, int* row, int* column);
int numroc_(const int* n, const int* block, const int* process, const int* source, const int* processes);
void descinit_(int* descriptor, const int* m, const int* n, const int* mb, const int* nb, const int* row_source,
               const int* column_source, const int* context, const int* leading, int* info);
void pdgemm_(const char* transa, const char* transb, const int* m, const int* n, const int* k, const double* alpha,
             const double* a, const int* ia, const int* ja, const int* desc_a, const double* b, const int* ib,
             const int* jb, const int* desc_b, const double* beta, double* c, const int* ic, const int* jc,
             const int* desc_c);

// With PDGEMM_WHEEL_BLAS, the library's calls of dgemm land here, and so in the very BLAS that tilewise uses.
#ifdef PDGEMM_WHEEL_BLAS
char* scipy_openblas_get_corename();
void scipy_dgemm_(const char* transa, const char* transb, const int* m, const int* n, const int* k, const double* alpha,
                  const double* a, const int* lda, const double* b, const int* ldb, const double* beta, double* c,
                  const int* ldc);
void dgemm_(const char* transa, const char* transb, const int* m, const int* n, const int* k, const double* alpha,
            const double* a, const int* lda, const double* b, const int* ldb, const double* beta, double* c,
            const int* ldc) {
    scipy_dgemm_(transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
#else
char* openblas_get_corename();
#endif
}

namespace {

const char* kernel_name() {
#ifdef PDGEMM_WHEEL_BLAS
    return scipy_openblas_get_corename();
#else
    return openblas_get_corename();
#endif
}

/// A value in [-0.5, 0.5) that depends on its place alone, so that any rank can check any element.
double value(std::int64_t row, std::int64_t column, std::uint64_t seed) {
    std::uint64_t x = static_cast<std::uint64_t>(row) * 0x9E3779B97F4A7C15U + static_cast<std::uint64_t>(column) + seed;
    x = (x ^ (x >> 31)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 29)) * 0x94D049BB133111EBU;
    return static_cast<double>(x >> 11) * 0x1p-53 - 0.5;
}

/// The global index of local element `local` in a block-cyclic dimension.
std::int64_t global(int local, int block, int process, int processes) {
    return (static_cast<std::int64_t>(local / block) * processes + process) * block + local % block;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    if (argc != 7) {
        std::fprintf(stderr, "usage: pdgemm N P Q BLOCK WARMUP RUNS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const int n = std::atoi(argv[1]), grid_rows = std::atoi(argv[2]), grid_columns = std::atoi(argv[3]);
    const int block = std::atoi(argv[4]), warmup = std::atoi(argv[5]), runs = std::atoi(argv[6]);
    int context = 0, p = 0, q = 0, row = 0, column = 0;
    Cblacs_get(-1, 0, &context);
    Cblacs_gridinit(&context, "Row", grid_rows, grid_columns);
    Cblacs_gridinfo(context, &p, &q, &row, &column);

    const int zero = 0, one = 1;
    const int rows = numroc_(&n, &block, &row, &zero, &p), columns = numroc_(&n, &block, &column, &zero, &q);
    const int leading = std::max(1, rows);
    int descriptor[9], info = 0;
    descinit_(descriptor, &n, &n, &block, &block, &zero, &zero, &context, &leading, &info);
    const std::size_t count = static_cast<std::size_t>(leading) * static_cast<std::size_t>(columns);
    std::vector<double> a(count), b(count), c(count);
    for (int j = 0; j < columns; ++j) {
        for (int i = 0; i < rows; ++i) {
            const auto at =
                static_cast<std::size_t>(j) * static_cast<std::size_t>(leading) + static_cast<std::size_t>(i);
            a[at] = value(global(i, block, row, p), global(j, block, column, q), 1);
            b[at] = value(global(i, block, row, p), global(j, block, column, q), 2);
        }
    }

    std::string seconds;
    const double alpha = 1, beta = 0;
    for (int run = 0; run < warmup + runs; ++run) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        pdgemm_("N", "N", &n, &n, &n, &alpha, a.data(), &one, &one, descriptor, b.data(), &one, &one, descriptor, &beta,
                c.data(), &one, &one, descriptor);
        double mine = MPI_Wtime() - start, slowest = 0;
        MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (run >= warmup) {
            seconds += (seconds.empty() ? "" : ", ") + std::to_string(slowest);
        }
    }

    // One element of each rank, recomputed: a peer that multiplies wrongly is no peer.
    double wrong = 0, worst = 0;
    if (rows > 0 && columns > 0) {
        const std::int64_t i = global(rows - 1, block, row, p), j = global(columns - 1, block, column, q);
        double expected = 0;
        for (int k = 0; k < n; ++k) expected += value(i, k, 1) * value(k, j, 2);
        wrong = std::abs(expected - c[count - static_cast<std::size_t>(leading - rows) - 1]);
    }
    MPI_Allreduce(&wrong, &worst, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        std::printf("{\"seconds\": [%s], \"kernel\": \"%s\", \"error\": %g}\n", seconds.c_str(), kernel_name(), worst);
    }
    MPI_Finalize();
    return worst < 1e-9 ? 0 : 1;
}
