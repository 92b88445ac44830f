// Tests of the MPI layer: agreement on failure, counts beyond 31 bits, strided types.
#include <doctest/doctest.h>
#include <numeric>
#include <string>
#include <vector>

#include "tilewise/mpi/datatype.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/mpi/window.hpp"

using namespace tilewise;
using namespace tilewise::mpi;

TEST_CASE("together: what fails on one rank is thrown on all, with its kind, text and rank") {
    const Communicator comm(MPI_COMM_WORLD);
    const int last = comm.size() - 1;
    try {
        together(comm, [&] {
            if (comm.rank() == last) {
                throw UsageError("bad number on the last rank");
            }
        });
        FAIL("nothing was thrown");
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::usage);
        CHECK(std::string(error.what()) == "bad number on the last rank");
        CHECK(error.rank() == last);
    }
    CHECK_NOTHROW(together(comm, [] {}));
}

TEST_CASE("check names the call and says what the library says") {
    const Communicator comm(MPI_COMM_WORLD);
    int value = 0;
    CHECK_THROWS_WITH_AS(check(MPI_Bcast(&value, 1, MPI_INT, comm.size() + 5, comm.get()), "MPI_Bcast"),
                         doctest::Contains("MPI_Bcast failed: "), Error);
}

TEST_CASE("sums of floating numbers are taken in the order of ranks") {
    const Communicator comm(MPI_COMM_WORLD);
    const auto share = [](int rank, std::int64_t i) {
        return (rank % 2 == 0 ? 1e16 : 1.0 / 3) + static_cast<double>(i);
    };
    for (const std::int64_t count : {std::int64_t{0}, std::int64_t{1}, std::int64_t{5}, (std::int64_t{1} << 18) + 3}) {
        std::vector<double> numbers(static_cast<std::size_t>(count)), expected(numbers.size());
        for (std::int64_t i = 0; i < count; ++i) {
            const auto at = static_cast<std::size_t>(i);
            numbers[at] = share(comm.rank(), i);
            expected[at] = share(0, i);
            for (int rank = 1; rank < comm.size(); ++rank) {
                expected[at] += share(rank, i);
            }
        }
        const std::int64_t calls = sum_over_ranks(comm, numbers.data(), count);
        CHECK(numbers == expected);
        CHECK((calls > 0) == (comm.size() > 1 && count > 0));
    }
}

TEST_CASE("counts beyond 31 bits become one derived type of the right size") {
    for (const std::int64_t count :
         {std::int64_t{5}, (std::int64_t{1} << 31) - 1, (std::int64_t{1} << 31) + 7, (std::int64_t{5} << 31) + 3}) {
        const Span span(count, MPI_BYTE);
        MPI_Count size = 0;
        check(MPI_Type_size_x(span.type(), &size), "MPI_Type_size_x");
        CHECK(size * span.count() == count);
    }
}

TEST_CASE("strided picks a rectangle out of rows, a share one out of a file") {
    const Communicator comm(MPI_COMM_SELF);
    std::vector<int> matrix(6 * 10);
    std::iota(matrix.begin(), matrix.end(), 0);
    const auto pick = [&](const int* start, const Datatype& type, int count) {
        std::vector<int> got(static_cast<std::size_t>(count));
        check(MPI_Sendrecv(start, 1, type.get(), 0, 0, got.data(), count, MPI_INT, 0, 0, comm.get(), MPI_STATUS_IGNORE),
              "MPI_Sendrecv");
        return got;
    };
    CHECK(pick(matrix.data() + 23, strided(2, 3, 10, MPI_INT), 6) == std::vector{23, 24, 25, 33, 34, 35});
    CHECK(pick(matrix.data(), share_of_matrix(6, 10, grid::Block{{1, 3}, {8, 10}}, MPI_INT), 4) ==
          std::vector{18, 19, 28, 29});
    MPI_Aint lower = 0, extent = 0;
    check(MPI_Type_get_extent(share_of_matrix(6, 10, grid::Block{{1, 3}, {8, 10}}, MPI_INT).get(), &lower, &extent),
          "MPI_Type_get_extent");
    CHECK(extent == 6 * 10 * 4);
}

TEST_CASE("shared memory is seen by the others") {
    const Communicator comm(MPI_COMM_WORLD);
    const Exposed exposed = allocate_shared(comm, 4096);
    *reinterpret_cast<int*>(exposed.data) = 100 + comm.rank();
    comm.barrier();
    const int next = (comm.rank() + 1) % comm.size();
    CHECK(*reinterpret_cast<const int*>(shared_data(exposed.window.get(), next)) == 100 + next);
    comm.barrier();
    CHECK_THROWS_AS(allocate_shared(comm, std::size_t{1} << 50), Error);
}

TEST_CASE("handles move and free once") {
    Datatype one = strided(1, 1, 1, MPI_INT);
    Datatype two = std::move(one);
    CHECK_FALSE(static_cast<bool>(one));
    CHECK(static_cast<bool>(two));
    two.reset();
    CHECK(two.get() == MPI_DATATYPE_NULL);
}
