// Agreement on failure by one reduction, and the abort that spares the other ranks an endless wait.
#include "tilewise/mpi/together.hpp"

#include <cstdlib>
#include <exception>
#include <string>

#include "tilewise/mpi/handle.hpp"

namespace tilewise::mpi {
namespace {

LastWords last_words_of_this_process;

[[noreturn]] void abort_job(MPI_Comm comm, const Error& error) {
    int rank = -1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (last_words_of_this_process) {
        last_words_of_this_process(error, rank);
    }
    MPI_Abort(comm, 1);
    std::abort();  // MPI_Abort does not return, but does not promise that to the compiler
}

}  // namespace

void agree(const Communicator& comm, const std::optional<Error>& mine) {
    // Of several ranks that fail together one may know the system's reason, while the others only heard from a library that something failed.
    const int size = comm.size(), nobody = 2 * size;
    const int candidate = !mine ? nobody : mine->error_number() != 0 ? comm.rank() : size + comm.rank();
    int failed = nobody;
    check(MPI_Allreduce(&candidate, &failed, 1, MPI_INT, MPI_MIN, comm.get()), "MPI_Allreduce");
    if (failed == nobody) {
        return;
    }
    failed %= size;
    std::string text = mine ? mine->what() : "";
    int header[4] = {mine ? static_cast<int>(mine->kind()) : 0, static_cast<int>(text.size()), mine ? mine->rank() : -1,
                     mine ? mine->error_number() : 0};
    check(MPI_Bcast(header, 4, MPI_INT, failed, comm.get()), "MPI_Bcast");
    text.resize(static_cast<std::size_t>(header[1]));
    check(MPI_Bcast(text.data(), header[1], MPI_CHAR, failed, comm.get()), "MPI_Bcast");
    throw AgreedError(static_cast<ErrorKind>(header[0]), text, header[2] >= 0 ? header[2] : failed, header[3]);
}

void set_last_words(LastWords last_words) { last_words_of_this_process = std::move(last_words); }

bool must_not_free() {
    int finalized = 0;
    MPI_Finalized(&finalized);
    return finalized != 0 || std::uncaught_exceptions() > 0;
}

NoReturnRegion::NoReturnRegion(const Communicator& comm) : comm_(comm.get()), exceptions_(std::uncaught_exceptions()) {}

NoReturnRegion::~NoReturnRegion() {
    if (std::uncaught_exceptions() > exceptions_) {
        abort_job(comm_, Error(ErrorKind::internal, "an error left a step that the other ranks wait for"));
    }
}

void abort_with_error_in_flight(MPI_Comm comm) { abort_job(comm, error_in_flight()); }

}  // namespace tilewise::mpi
