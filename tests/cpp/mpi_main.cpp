// Runs the tests that need MPI, on however many ranks there are; fails on every rank if it fails on one.
#define DOCTEST_CONFIG_IMPLEMENT
#include <cstdio>
#include <cstring>
#include <doctest/doctest.h>
#include <stdexcept>

#include "tilewise/mpi/together.hpp"
#include "tilewise/mpi/window.hpp"

namespace {

/// Rank 1 throws with a window open, which the others will never free with it.
void abort_on_purpose() {
    using namespace tilewise;
    const mpi::Communicator comm(MPI_COMM_WORLD);
    mpi::set_last_words([](const Error& error, int rank) {
        std::printf("last words of rank %d: %s\n", rank, error.what());
        std::fflush(stdout);
    });
    mpi::no_return(comm, [&] {
        const mpi::Exposed exposed = mpi::allocate_window(comm, 64);
        if (comm.rank() == 1) {
            throw std::runtime_error("thrown on purpose");
        }
        comm.barrier();
    });
}

}  // namespace

int main(int argc, char** argv) {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    if (argc > 1 && std::strcmp(argv[1], "--abort") == 0) {
        abort_on_purpose();
    }
    doctest::Context context(argc, argv);
    context.setOption("order-by", "name");  // the same order on every rank: tests communicate
    int failed = context.run();
    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Finalize();
    return failed;
}
