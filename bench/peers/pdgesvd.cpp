// ScaLAPACK's pdgesvd with vectors, timed: pdgesvd FILE.npy P Q BLOCK WARMUP RUNS prints one JSON line with the seconds
// of every run.
//
// FILE: float64, C order. The line: {"seconds": [the slowest rank of each run], "sigma": [descending], "orthogonality":
// how far the lengths of the columns of U and of the rows of V' are from 1 at most}.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
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
void pdgesvd_(const char* jobu, const char* jobvt, const int* m, const int* n, double* a, const int* ia, const int* ja,
              const int* desc_a, double* s, double* u, const int* iu, const int* ju, const int* desc_u, double* vt,
              const int* ivt, const int* jvt, const int* desc_vt, double* work, const int* lwork, int* info,
              std::size_t, std::size_t);
}

namespace {

struct Grid {
    int context = 0, rows = 0, columns = 0, row = 0, column = 0, block = 0;
};

/// A matrix dealt block-cyclically; column-major on each rank.
struct Dealt {
    int descriptor[9] = {}, rows = 0, columns = 0, leading = 0;
    std::vector<double> data{};

    Dealt(const Grid& grid, int m, int n) {
        const int zero = 0;
        rows = numroc_(&m, &grid.block, &grid.row, &zero, &grid.rows);
        columns = numroc_(&n, &grid.block, &grid.column, &zero, &grid.columns);
        leading = std::max(1, rows);
        int info = 0;
        descinit_(descriptor, &m, &n, &grid.block, &grid.block, &zero, &zero, &grid.context, &leading, &info);
        data.resize(static_cast<std::size_t>(leading) * static_cast<std::size_t>(std::max(1, columns)));
    }
    double& at(int i, int j) {
        return data[static_cast<std::size_t>(j) * static_cast<std::size_t>(leading) + static_cast<std::size_t>(i)];
    }
};

/// The global index of local element `local` in a block-cyclic dimension.
int global(int local, int block, int process, int processes) {
    return (local / block * processes + process) * block + local % block;
}

[[noreturn]] void fail(const std::string& text) {
    std::fprintf(stderr, "pdgesvd: %s\n", text.c_str());
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
}

/// Leaves the file where its numbers begin.
void read_header(std::ifstream& file, int& rows, int& columns) {
    char lead[10] = {};
    file.read(lead, 10);
    std::string header(static_cast<unsigned char>(lead[8]) + 256U * static_cast<unsigned char>(lead[9]), ' ');
    file.read(header.data(), static_cast<std::streamsize>(header.size()));
    const std::size_t shape = header.find("'shape': (");
    if (!file || lead[6] != 1 || header.find("'<f8'") == std::string::npos || shape == std::string::npos ||
        header.find("'fortran_order': False") == std::string::npos ||
        std::sscanf(header.c_str() + shape, "'shape': (%d, %d", &rows, &columns) != 2) {
        fail("the file is no float64 matrix in C order");
    }
}

/// How far the sums, over the ranks, of squares of each global column (or row) are from 1.
double away_from_one(Dealt& part, const Grid& grid, int count, bool of_rows) {
    std::vector<double> sums(static_cast<std::size_t>(count));
    for (int j = 0; j < part.columns; ++j) {
        for (int i = 0; i < part.rows; ++i) {
            const int k =
                of_rows ? global(i, grid.block, grid.row, grid.rows) : global(j, grid.block, grid.column, grid.columns);
            sums[static_cast<std::size_t>(k)] += part.at(i, j) * part.at(i, j);
        }
    }
    MPI_Allreduce(MPI_IN_PLACE, sums.data(), count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    double worst = 0;
    for (const double sum : sums) {
        const double d = std::abs(std::sqrt(sum) - 1);
        worst = d <= worst ? worst : d;  // NaN too
    }
    return worst;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    if (argc != 7) {
        std::fprintf(stderr, "usage: pdgesvd FILE.npy P Q BLOCK WARMUP RUNS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    std::ifstream file(argv[1], std::ios::binary);
    int m = 0, n = 0;
    read_header(file, m, n);
    const int least = std::min(m, n), warmup = std::atoi(argv[5]), runs = std::atoi(argv[6]);
    Grid grid;
    grid.block = std::atoi(argv[4]);
    Cblacs_get(-1, 0, &grid.context);
    Cblacs_gridinit(&grid.context, "Row", std::atoi(argv[2]), std::atoi(argv[3]));
    Cblacs_gridinfo(grid.context, &grid.rows, &grid.columns, &grid.row, &grid.column);

    Dealt original(grid, m, n), u(grid, m, least), vt(grid, least, n);
    std::vector<double> row(static_cast<std::size_t>(n)), sigma(static_cast<std::size_t>(least));
    const auto begin = file.tellg();
    for (int i = 0; i < original.rows; ++i) {
        const int from = global(i, grid.block, grid.row, grid.rows);
        file.seekg(begin + static_cast<std::streamoff>(from) * n * 8);
        file.read(reinterpret_cast<char*>(row.data()), static_cast<std::streamsize>(8 * row.size()));
        for (int j = 0; j < original.columns; ++j) {
            original.at(i, j) = row[static_cast<std::size_t>(global(j, grid.block, grid.column, grid.columns))];
        }
    }
    if (!file) {
        fail("the file ends early");
    }

    Dealt a = original;
    const int one = 1;
    int info = 0, lwork = -1;
    std::vector<double> work(1);
    const auto call = [&] {
        pdgesvd_("V", "V", &m, &n, a.data.data(), &one, &one, a.descriptor, sigma.data(), u.data.data(), &one, &one,
                 u.descriptor, vt.data.data(), &one, &one, vt.descriptor, work.data(), &lwork, &info, 1, 1);
        if (info != 0) {
            fail("ended with info = " + std::to_string(info));
        }
    };
    call();
    lwork = static_cast<int>(work[0]) + 64;
    work.resize(static_cast<std::size_t>(lwork));

    std::string seconds;
    for (int run = 0; run < warmup + runs; ++run) {
        a.data = original.data;
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        call();
        double mine = MPI_Wtime() - start, slowest = 0;
        MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (run >= warmup) {
            seconds += (seconds.empty() ? "" : ", ") + std::to_string(slowest);
        }
    }

    // A peer that decomposes wrongly is no peer; its singular values are for the caller to compare.
    const double worst = std::max(away_from_one(u, grid, least, false), away_from_one(vt, grid, least, true));
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        std::printf("{\"seconds\": [%s], \"orthogonality\": %g, \"sigma\": [", seconds.c_str(), worst);
        for (std::size_t k = 0; k < sigma.size(); ++k) {
            std::printf("%s%.17g", k > 0 ? ", " : "", sigma[k]);
        }
        std::printf("]}\n");
    }
    MPI_Finalize();
    return worst < 1e-10 ? 0 : 1;
}
