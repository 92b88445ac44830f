// Tests of norms against plain sums over the matrix that is in the file.
#include <algorithm>
#include <cmath>
#include <complex>
#include <doctest/doctest.h>
#include <limits>
#include <vector>

#include "io_cases.hpp"
#include "tilewise/norm/norm.hpp"

using namespace tilewise;

namespace {

norm::Sums sums_of(const std::vector<double>& values, Dtype dtype = Dtype::float64) {
    norm::Sums sums;
    std::vector<double> columns(values.size());
    const auto count = static_cast<std::int64_t>(values.size() * sizeof(double) / size_of(dtype));
    sums.add(reinterpret_cast<const std::byte*>(values.data()), count, dtype, false, columns.data());
    return sums;
}

}  // namespace

TEST_CASE("norms: every way to read and every size of a band gives those of the matrix, whatever its order") {
    const mpi::Communicator comm(MPI_COMM_WORLD);
    constexpr std::int64_t rows = 7, columns = 12;
    std::vector<std::int32_t> values;
    for (std::int32_t i = 0; i < rows * columns; ++i) {
        values.push_back((i * 37 % 101 - 50) * (i % 5));
    }
    std::vector<double> of_rows(rows), of_columns(columns);
    double squares = 0, most = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double value = std::abs(values[i]);
        of_rows[i / columns] += value;
        of_columns[i % columns] += value;
        squares += value * value;
        most = std::max(most, value);
    }
    const double one = *std::max_element(of_columns.begin(), of_columns.end()),
                 infinity = *std::max_element(of_rows.begin(), of_rows.end());
    const test::Scratch scratch(comm);
    scratch.fill(3, values);
    for (const bool column_major : {false, true}) {
        io::Region a = test::region(scratch.path, rows, columns, 3);
        if (column_major) {  // the same numbers are the transpose then
            std::swap(a.rows, a.columns);
            a.column_major = true;
        }
        for (const std::int64_t band_bytes : {1, 20, 100, 1 << 20}) {
            for (const char* read : {"positioned", "root", "root_collective", "collective", "mapped", "two_phase"}) {
                CAPTURE(read);
                CAPTURE(band_bytes);
                Ledger ledger;
                Context context{comm, ledger, 2};
                const auto done =
                    norm::norms(context, a, {.read = io::strategy_named(read), .hints = {}, .band_bytes = band_bytes});
                CHECK(done.frobenius == std::sqrt(squares));
                CHECK(done.one == (column_major ? infinity : one));
                CHECK(done.infinity == (column_major ? one : infinity));
                CHECK(done.max == most);
                CHECK(done.nans + done.infinities == 0);
            }
        }
    }
}

TEST_CASE("norms: squares beyond the range of float64 do no harm, and what is not finite is counted") {
    const double tiny = std::numeric_limits<double>::denorm_min();
    CHECK(sums_of({3e300, 4e300}).root() == doctest::Approx(5e300).epsilon(1e-15));
    CHECK(sums_of({3e-300, 4e-300}).root() == doctest::Approx(5e-300).epsilon(1e-15));
    CHECK(sums_of({3 * tiny, 4 * tiny}).root() == 5 * tiny);
    CHECK(sums_of({1e300, 1e-300, 1}).root() == 1e300);
    CHECK(std::isinf(sums_of({1.7e308, 1.7e308}).root()));
    CHECK(sums_of({}).root() == 0);
    norm::Sums both = sums_of({1e-200, 1e-200});
    both += sums_of({3e-130, 4e-130});
    CHECK(both.root() == doctest::Approx(5e-130).epsilon(1e-15));
    CHECK(sums_of({3e300, 4e300}, Dtype::complex128).largest == doctest::Approx(5e300).epsilon(1e-15));
    CHECK(sums_of({3e-300, -4e-300}, Dtype::complex128).root() == doctest::Approx(5e-300).epsilon(1e-15));
    const norm::Sums odd = sums_of({INFINITY, 1, NAN, -INFINITY, NAN, NAN});
    CHECK(odd.infinities == 2);
    CHECK(odd.nans == 3);
    CHECK(sums_of({NAN, INFINITY, NAN, 1}, Dtype::complex128).infinities == 1);
}
