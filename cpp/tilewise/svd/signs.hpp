// Which way the vectors point: the element of largest magnitude in each column of U is positive, so that runs on
// different ranks agree.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewise/mpi/communicator.hpp"

namespace tilewise::svd {

/// Some rows of a matrix: element (i, j) is data[i·row_step + j·column_step].
template <class T> struct Elements {
    const T* data = nullptr;
    std::int64_t rows = 0, columns = 0, row_step = 0, column_step = 0;
};

/// Of each column +1 or −1: the sign of its element of largest magnitude, of several within 10⁻⁶ of it the first. `all`
/// are this process's: not collective.
template <class T> std::vector<double> signs(const Elements<T>& all);
/// The same where the ranks have consecutive rows, this one from `first_row` on. @note Collective.
template <class T> std::vector<double> signs(const mpi::Communicator& comm, const Elements<T>& mine,
                                             std::int64_t first_row);

extern template std::vector<double> signs(const Elements<float>& all);
extern template std::vector<double> signs(const Elements<double>& all);
extern template std::vector<double> signs(const mpi::Communicator& comm, const Elements<float>& mine,
                                          std::int64_t first_row);
extern template std::vector<double> signs(const mpi::Communicator& comm, const Elements<double>& mine,
                                          std::int64_t first_row);

}  // namespace tilewise::svd
