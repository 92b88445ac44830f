// Multiplies two generated matrices on all ranks with libtilewise, and says whether the product was verified.
#include <cstdio>

#include "tilewise/multiply/multiply.hpp"

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    bool passed = false;
    {
        using namespace tilewise;
        Ledger ledger;
        Context context{mpi::Communicator(MPI_COMM_WORLD), ledger};
        const io::Region a{.name = "A", .rows = 300, .columns = 200, .generator = "normal", .seed = 1};
        const io::Region b{.name = "B", .rows = 200, .columns = 100, .generator = "normal", .seed = 2};
        ledger.start(Phase::input);
        const auto outcome =
            multiply::multiply(context, a, b, nullptr, Dtype::float64, {.grid = {1, context.comm.size()}});
        ledger.stop();
        passed = outcome.verification->passed;
        if (context.comm.rank() == 0) {
            std::printf("verified: %s, computed in %.6f s\n", passed ? "yes" : "no", ledger.seconds(Phase::compute));
        }
    }
    MPI_Finalize();
    return passed ? 0 : 1;
}
