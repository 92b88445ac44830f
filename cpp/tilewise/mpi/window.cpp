// Allocates windows, asking beforehand whether the node's shared memory has the room.
#include "tilewise/mpi/window.hpp"

#include <cstdint>
#include <exception>
#include <sys/statvfs.h>

#include "tilewise/base/work.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::mpi {
namespace {

void set_returning_errors(const Exposed& exposed) {
    check(MPI_Win_set_errhandler(exposed.window.get(), MPI_ERRORS_RETURN), "MPI_Win_set_errhandler");
}

void check_room(const Communicator& comm, std::size_t bytes) {
    const auto all = sum_of<std::uint64_t>(comm, bytes);
    together(comm, [&] {
        struct statvfs facts{};
        if (statvfs("/dev/shm", &facts) == 0) {
            const std::uint64_t room = static_cast<std::uint64_t>(facts.f_bavail) * facts.f_frsize;
            if (room < all) {
                throw MemoryError("shared memory: " + std::to_string(all) + " bytes are needed in /dev/shm, but " +
                                  std::to_string(room) + " are free; use another --exchange, such as overlap");
            }
        }
    });
}

constexpr std::size_t cache_line = 64;

/// The first cache line at or behind `data`. Open MPI begins a rank's part anywhere, and the kernels want lines. All
/// ranks come to the same place: they map the same pages.
std::byte* aligned(std::byte* data) {
    const std::size_t over = reinterpret_cast<std::uintptr_t>(data) % cache_line;
    return over == 0 ? data : data + (cache_line - over);
}

}  // namespace

void check_one_sided(int code, const char* call) {
    try {
        check(code, call);
    } catch (const Error& error) {
        std::string advice = "; this network may not carry one-sided messages: use another --exchange, such as overlap";
#ifdef OPEN_MPI
        advice += ", or set OMPI_MCA_osc=pt2pt";
#endif
        throw Error(error.kind(), error.what() + advice, error.rank());
    }
}

Exposed allocate_window(const Communicator& comm, std::size_t bytes) {
    Exposed exposed;
    check_one_sided(MPI_Win_allocate(static_cast<MPI_Aint>(bytes), 1, MPI_INFO_NULL, comm.get(), &exposed.data,
                                     exposed.window.out()),
                    "MPI_Win_allocate");
    set_returning_errors(exposed);
    return exposed;
}

Exposed create_window(const Communicator& comm, std::span<std::byte> memory) {
    Exposed exposed;
    check_one_sided(MPI_Win_create(memory.data(), static_cast<MPI_Aint>(memory.size()), 1, MPI_INFO_NULL, comm.get(),
                                   exposed.window.out()),
                    "MPI_Win_create");
    set_returning_errors(exposed);
    exposed.data = memory.data();
    return exposed;
}

void require_one_node(const Communicator& everybody, const Communicator& group, const char* advice) {
    const bool one_node = group.node().size() == group.size();
    together(everybody, [&] {
        if (!one_node) {
            throw UsageError(std::string("exchange 'shared' needs all ranks on one node; use ") + advice);
        }
    });
}

Exposed allocate_on_one_node(const Communicator& comm, std::size_t bytes) {
    require_one_node(comm, comm, "overlap");
    return allocate_shared(comm, bytes);
}

Exposed allocate_shared(const Communicator& comm, std::size_t bytes) {
    if (is_simulated) {  // parts of unlike sizes overlap there, and every rank is shown the first one's
        throw UsageError("exchange 'shared' needs shared windows, which " + library_version() +
                         " has wrong; use overlap");
    }
    check_room(comm, bytes + cache_line);
    Exposed exposed;
    Info info;  // each rank's part on pages of its own
    check(MPI_Info_create(info.out()), "MPI_Info_create");
    check(MPI_Info_set(info.get(), "alloc_shared_noncontig", "true"), "MPI_Info_set");
    check(MPI_Win_allocate_shared(static_cast<MPI_Aint>(bytes + cache_line), 1, info.get(), comm.get(), &exposed.data,
                                  exposed.window.out()),
          "MPI_Win_allocate_shared");
    set_returning_errors(exposed);
    exposed.data = aligned(exposed.data);
    return exposed;
}

std::byte* shared_data(MPI_Win window, int rank) {
    MPI_Aint bytes = 0;
    int unit = 0;
    std::byte* data = nullptr;
    check(MPI_Win_shared_query(window, rank, &bytes, &unit, &data), "MPI_Win_shared_query");
    return aligned(data);
}

Queue::Queue(const Communicator& comm) : ranks_(comm.size()) {
    if (ranks_ == 1) {
        return;
    }
    exposed_ = allocate_window(comm, comm.rank() == 0 ? sizeof(std::int64_t) : 0);
    check(MPI_Win_lock_all(MPI_MODE_NOCHECK, exposed_.window.get()), "MPI_Win_lock_all");
    if (comm.rank() == 0) {
        const std::int64_t none = 0;
        std::int64_t was = 0;
        check(MPI_Fetch_and_op(&none, &was, MPI_INT64_T, 0, 0, MPI_REPLACE, exposed_.window.get()), "MPI_Fetch_and_op");
        check(MPI_Win_flush(0, exposed_.window.get()), "MPI_Win_flush");
    }
    comm.barrier();
}

Queue::~Queue() {
    if (exposed_.window && !must_not_free(ranks_)) {
        MPI_Win_unlock_all(exposed_.window.get());
    }
}

std::int64_t Queue::next() {
    if (ranks_ == 1) {
        return here_++;
    }
    const std::int64_t one = 1;
    std::int64_t mine = 0;
    check(MPI_Fetch_and_op(&one, &mine, MPI_INT64_T, 0, 0, MPI_SUM, exposed_.window.get()), "MPI_Fetch_and_op");
    check(MPI_Win_flush(0, exposed_.window.get()), "MPI_Win_flush");
    return mine;
}

}  // namespace tilewise::mpi
