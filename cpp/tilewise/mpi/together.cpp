// Agreement on failure by one reduction, and the abort that spares the other ranks an endless wait.
#include "tilewise/mpi/together.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <string>

#include "tilewise/base/host.hpp"
#include "tilewise/mpi/handle.hpp"
#include "tilewise/mpi/sum.hpp"

namespace tilewise::mpi {
namespace {

LastWords last_words_of_this_process;
StepFault step_fault_of_this_process;

/// Lives as long as the exception object that it is a part of, and so tells destructors what is passing: the language
/// does not. Copies of an exception are not in flight.
class Flight {
public:
    explicit Flight(int ranks) : ranks_(ranks), level_(std::uncaught_exceptions() + 1), before_(newest) {
        newest = this;
    }
    Flight(const Flight&) noexcept {}
    Flight& operator=(const Flight&) = delete;
    ~Flight() {
        for (Flight** link = &newest; *link != nullptr; link = &(*link)->before_) {
            if (*link == this) {
                *link = before_;
                return;
            }
        }
    }

    /// How many ranks unwind alike, in a destructor that an exception has called.
    static int ranks() {
        const bool passes = newest != nullptr && newest->level_ == std::uncaught_exceptions();
        return passes ? newest->ranks_ : 0;
    }

private:
    static thread_local Flight* newest;
    int ranks_ = 0, level_ = 0;
    Flight* before_ = nullptr;
};

thread_local Flight* Flight::newest = nullptr;

template <ErrorKind kind> struct Agreed : ErrorOf<kind> {
    Agreed(const Error& error, int ranks)
        : ErrorOf<kind>(error.what(), error.rank(), error.error_number(), error.advice(), ranks),
          flight(ranks) {}
    Flight flight;
};

/// A text of a length that all versions agree on.
struct Text {
    std::array<char, 128> bytes{};

    explicit Text(const std::string& text) {
        std::copy_n(text.begin(), std::min(text.size(), bytes.size() - 1), bytes.begin());
    }
    std::string text() const { return bytes.data(); }
};

}  // namespace

void throw_agreed(const Communicator& comm, const Error& error) {
    switch (error.kind()) {
        case ErrorKind::usage:
            throw Agreed<ErrorKind::usage>(error, comm.size());
        case ErrorKind::memory:
            throw Agreed<ErrorKind::memory>(error, comm.size());
        case ErrorKind::io:
            throw Agreed<ErrorKind::io>(error, comm.size());
        case ErrorKind::mpi:
            throw Agreed<ErrorKind::mpi>(error, comm.size());
        case ErrorKind::launcher:
            throw Agreed<ErrorKind::launcher>(error, comm.size());
        case ErrorKind::verification:
            throw Agreed<ErrorKind::verification>(error, comm.size());
        case ErrorKind::stopped:
            throw Agreed<ErrorKind::stopped>(error, comm.size());
        case ErrorKind::internal:
            break;
    }
    throw Agreed<ErrorKind::internal>(error, comm.size());
}

void agree(const Communicator& comm, const std::optional<Error>& mine) {
    // Of several ranks that fail together one may know the system's reason, while the others only heard from a library
    // that something failed.
    const int size = comm.size(), nobody = 2 * size;
    const int candidate = !mine ? nobody : mine->error_number() != 0 ? comm.rank() : size + comm.rank();
    int failed = nobody;
    check(MPI_Allreduce(&candidate, &failed, 1, MPI_INT, MPI_MIN, comm.get()), "MPI_Allreduce");
    if (failed == nobody) {
        return;
    }
    failed %= size;
    std::string text = mine ? mine->what() + mine->advice() : "";
    const std::size_t advice = mine ? mine->advice().size() : 0;
    int header[5] = {mine ? static_cast<int>(mine->kind()) : 0, static_cast<int>(text.size()), mine ? mine->rank() : -1,
                     mine ? mine->error_number() : 0, static_cast<int>(advice)};
    check(MPI_Bcast(header, 5, MPI_INT, failed, comm.get()), "MPI_Bcast");
    text.resize(static_cast<std::size_t>(header[1]));
    check(MPI_Bcast(text.data(), header[1], MPI_CHAR, failed, comm.get()), "MPI_Bcast");
    const std::size_t message = text.size() - static_cast<std::size_t>(header[4]);
    throw_agreed(comm, Error(static_cast<ErrorKind>(header[0]), text.substr(0, message),
                             header[2] >= 0 ? header[2] : failed, header[3], text.substr(message)));
}

void set_step_fault(StepFault fault) { step_fault_of_this_process = std::move(fault); }

void meet_step_fault(const Communicator& comm) {
    if (step_fault_of_this_process) {
        step_fault_of_this_process(comm);
    }
}

void set_last_words(LastWords last_words) { last_words_of_this_process = std::move(last_words); }

bool must_not_free(int waits_for) {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized != 0 || std::uncaught_exceptions() == 0) {
        return finalized != 0;
    }
    return waits_for == some_ranks ? Flight::ranks() == 0 : waits_for > 1 && Flight::ranks() < waits_for;
}

void rethrow_or_abort(const Communicator& comm) {
    const Error error = error_in_flight();
    if (comm.size() == 1 || error.agreed_by() >= comm.size()) {
        throw;
    }
    if (error.kind() == ErrorKind::mpi && losses_are_survived()) {
        throw;  // a rank may have died: whoever called us finds out, and goes on with the others
    }
    int rank = -1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (last_words_of_this_process) {
        last_words_of_this_process(error, rank);
    }
    MPI_Abort(comm.get(), 1);
    std::abort();  // MPI_Abort does not return, but does not promise that to the compiler
}

void require_same(const Communicator& comm, const std::string& what, const std::string& version,
                  const std::string& advice) {
    if (comm.size() == 1) {
        return;
    }
    struct Told {
        Text version, host;
    };
    const Told first = of_root(comm, Told{Text(version), Text(host_name())});
    together(comm, [&] {
        if (first.version.text() != Text(version).text()) {
            throw UsageError(what + " on " + host_name() + " is of version " + version + ", that on " +
                                 first.host.text() + " of version " + first.version.text(),
                             -1, 0, advice);
        }
    });
}

bool is_same(const Communicator& comm, const std::string& text) {
    const Text mine(text);
    return !any_of(comm, of_root(comm, mine).text() != mine.text());
}

}  // namespace tilewise::mpi
