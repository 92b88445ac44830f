// Multiplies a matrix in the ranks' memory, dealt out as ScaLAPACK does, and one that is generated, into a file.
#include <cstdio>
#include <vector>

#include <tilewise/tilewise.hpp>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int status = 0;
    try {
        using namespace tilewise;
        // A: blocks of 32 × 16 in turn to one row of ranks, each rank's share column by column.
        const auto by_blocks =
            Distribution::block_cyclic(300, 200, {.grid = {1, ranks}, .row_block = 32, .column_block = 16});
        const std::int64_t rows = by_blocks.local_rows(rank), columns = by_blocks.local_columns(rank);
        std::vector<double> a(static_cast<std::size_t>(rows * columns));
        for (std::int64_t i = 0; i < rows; ++i) {
            for (std::int64_t j = 0; j < columns; ++j) {
                const std::int64_t k = (j / 16 * ranks + rank) * 16 + j % 16;  // the column in the whole matrix
                a[static_cast<std::size_t>(j * rows + i)] = static_cast<double>((i + 2 * k) % 7);
            }
        }
        const Matrix b = generated(200, 100, Dtype::float64, Generator::ramp);
        const auto c =
            create(MPI_COMM_WORLD, argc > 1 ? argv[1] : "C.npy", 300, 100, Dtype::float64, {.replace = true});
        const Report report =
            multiply(MPI_COMM_WORLD, view(by_blocks, a.data(), Order::column_major), b, c, {.verify = true});
        if (rank == 0) {
            std::printf("verified: %s, computed in %.6f s\n", report.verification->passed ? "yes" : "no",
                        report.compute);
        }
    } catch (const tilewise::Error& error) {  // the same on every rank
        status = rank == 0 ? std::fprintf(stderr, "%s\n", error.what()) > 0 : 1;
    }
    MPI_Finalize();
    return status;
}
