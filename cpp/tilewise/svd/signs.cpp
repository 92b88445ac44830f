// Two looks at each column: how large its largest element is, and which is the first that comes near.
#include "tilewise/svd/signs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tilewise/base/threads.hpp"

namespace tilewise::svd {
namespace {

using mpi::check;

constexpr double nearly = 1 - 1e-6;
constexpr std::int64_t nowhere = std::numeric_limits<std::int64_t>::max();

double wide(float value) { return value; }
double wide(double value) { return value; }
const kernel::Complex& wide(const kernel::Complex& value) { return value; }

template <class T> std::vector<double> largest(const Elements<T>& u) {
    std::vector<double> found(static_cast<std::size_t>(u.columns), 0.0);
    const bool by_rows = u.column_step < u.row_step;
    for (std::int64_t outer = 0; outer < (by_rows ? u.rows : u.columns); ++outer) {
        for (std::int64_t inner = 0; inner < (by_rows ? u.columns : u.rows); ++inner) {
            const std::int64_t i = by_rows ? outer : inner, j = by_rows ? inner : outer;
            double& most = found[static_cast<std::size_t>(j)];
            most = std::max(most, std::abs(wide(u.data[i * u.row_step + j * u.column_step])));
        }
    }
    return found;
}

/// Twice the row of the first element near the largest one, and one more where it is negative.
template <class T> std::vector<std::int64_t> first(const Elements<T>& u, const std::vector<double>& most,
                                                   std::int64_t first_row) {
    std::vector<std::int64_t> found(static_cast<std::size_t>(u.columns), nowhere);
    for (std::int64_t j = 0; j < u.columns; ++j) {
        for (std::int64_t i = 0; i < u.rows; ++i) {
            const Sign<T> value = wide(u.data[i * u.row_step + j * u.column_step]);
            if (std::abs(value) >= nearly * most[static_cast<std::size_t>(j)]) {
                found[static_cast<std::size_t>(j)] = 2 * (first_row + i) + (kernel::real_part(value) < 0 ? 1 : 0);
                break;
            }
        }
    }
    return found;
}

std::vector<double> signs_of(const std::vector<std::int64_t>& found) {
    std::vector<double> signs(found.size());
    for (std::size_t j = 0; j < found.size(); ++j) {
        signs[j] = found[j] != nowhere && found[j] % 2 == 1 ? -1 : 1;
    }
    return signs;
}

/// z̅/|z| of each column's element that was found, where it is among these rows: else 0.
std::vector<kernel::Complex> ways_of(const Elements<kernel::Complex>& u, const std::vector<std::int64_t>& found,
                                     std::int64_t first_row) {
    std::vector<kernel::Complex> ways(found.size());
    for (std::size_t j = 0; j < found.size(); ++j) {
        const std::int64_t i = found[j] / 2 - first_row;
        if (i >= 0 && i < u.rows) {
            const kernel::Complex z = u.data[i * u.row_step + static_cast<std::int64_t>(j) * u.column_step];
            ways[j] = z == 0.0 ? 1.0 : std::conj(z) / std::abs(z);
        }
    }
    return ways;
}

}  // namespace

template <class T> std::vector<Sign<T>> signs(const Elements<T>& all) {
    const std::vector<std::int64_t> found = first(all, largest(all), 0);
    if constexpr (kernel::is_complex_number<T>) {
        return ways_of(all, found, 0);
    } else {
        return signs_of(found);
    }
}

template <class T> std::vector<Sign<T>> signs(const mpi::Communicator& comm, const Elements<T>& mine,
                                              std::int64_t first_row) {
    std::vector<double> most = largest(mine);
    const auto count = static_cast<int>(most.size());
    check(MPI_Allreduce(MPI_IN_PLACE, most.data(), count, MPI_DOUBLE, MPI_MAX, comm.get()), "MPI_Allreduce");
    std::vector<std::int64_t> found = first(mine, most, first_row);
    check(MPI_Allreduce(MPI_IN_PLACE, found.data(), count, MPI_INT64_T, MPI_MIN, comm.get()), "MPI_Allreduce");
    if constexpr (kernel::is_complex_number<T>) {
        std::vector<T> ways = ways_of(mine, found, first_row);  // 0 where the element is another rank's
        check(MPI_Allreduce(MPI_IN_PLACE, ways.data(), 2 * count, MPI_DOUBLE, MPI_SUM, comm.get()), "MPI_Allreduce");
        return ways;
    } else {
        return signs_of(found);
    }
}

template <class T> PassingSigns<T>::PassingSigns(std::int64_t columns)
    : most_(static_cast<std::size_t>(columns), 0.0),
      rows_(static_cast<std::size_t>(columns), nowhere),
      values_(static_cast<std::size_t>(columns), T{}) {}

template <class T>
void PassingSigns<T>::note(const T* u, std::int64_t rows, std::int64_t first_row, int threads) {
    const std::int64_t columns = std::ssize(most_);
    parallel_ranges(threads, columns, [&](std::int64_t begin, std::int64_t end, int) {
        std::vector<double> here(static_cast<std::size_t>(end - begin), 0.0);
        for (std::int64_t i = 0; i < rows; ++i) {
            const T* row = u + i * columns + begin;
            for (std::size_t j = 0; j < here.size(); ++j) {
                here[j] = std::max(here[j], std::abs(row[j]));
            }
        }
        for (std::int64_t column = begin; column < end; ++column) {
            const auto j = static_cast<std::size_t>(column);
            const double largest = here[static_cast<std::size_t>(column - begin)];
            most_[j] = std::max(most_[j], largest);
            for (std::int64_t i = 0; i < rows && largest >= nearly * most_[j]; ++i) {
                if (const T value = u[i * columns + column]; std::abs(value) >= nearly * most_[j]) {
                    rows_[j] = first_row + i;
                    values_[j] = value;
                    break;
                }
            }
        }
    });
}

template <class T> std::vector<Sign<T>> PassingSigns<T>::signs(const mpi::Communicator& comm) const {
    std::vector<double> most = most_;
    const auto count = static_cast<int>(most.size());
    check(MPI_Allreduce(MPI_IN_PLACE, most.data(), count, MPI_DOUBLE, MPI_MAX, comm.get()), "MPI_Allreduce");
    std::vector<std::int64_t> mine(most.size(), nowhere);
    for (std::size_t j = 0; j < most.size(); ++j) {
        if (rows_[j] != nowhere && std::abs(values_[j]) >= nearly * most[j]) {
            mine[j] = 2 * rows_[j] + (kernel::real_part(values_[j]) < 0 ? 1 : 0);
        }
    }
    std::vector<std::int64_t> found = mine;
    check(MPI_Allreduce(MPI_IN_PLACE, found.data(), count, MPI_INT64_T, MPI_MIN, comm.get()), "MPI_Allreduce");
    if constexpr (kernel::is_complex_number<T>) {
        std::vector<T> ways(most.size());  // 0 where the element is another rank's
        for (std::size_t j = 0; j < most.size(); ++j) {
            if (mine[j] == found[j] && mine[j] != nowhere) {
                ways[j] = values_[j] == 0.0 ? 1.0 : std::conj(values_[j]) / std::abs(values_[j]);
            }
        }
        check(MPI_Allreduce(MPI_IN_PLACE, ways.data(), 2 * count, MPI_DOUBLE, MPI_SUM, comm.get()), "MPI_Allreduce");
        return ways;
    } else {
        return signs_of(found);
    }
}

template class PassingSigns<double>;
template class PassingSigns<kernel::Complex>;

TILEWISE_SIGNS(, float)
TILEWISE_SIGNS(, double)
TILEWISE_SIGNS(, kernel::Complex)

}  // namespace tilewise::svd
