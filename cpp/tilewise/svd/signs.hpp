// Which way the vectors point: the element of largest magnitude in each column of U is positive (of complex numbers
// real as well), so that runs on different ranks agree.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewise/kernel/scalar.hpp"
#include "tilewise/mpi/communicator.hpp"

namespace tilewise::svd {

/// Some rows of a matrix: element (i, j) is data[i·row_step + j·column_step].
template <class T> struct Elements {
    const T* data = nullptr;
    std::int64_t rows = 0, columns = 0, row_step = 0, column_step = 0;
};

/// What a column is multiplied with: ±1, or a complex number of magnitude 1.
template <class T> using Sign = std::conditional_t<kernel::is_complex_number<T>, kernel::Complex, double>;

/// Of each column +1 or −1: the sign of its element of largest magnitude, of several within 10⁻⁶ of it the first; of
/// complex numbers z̅/|z|. `all` are this process's: not collective.
template <class T> std::vector<Sign<T>> signs(const Elements<T>& all);
/// The same where the ranks have consecutive rows, this one from `first_row` on. @note Collective.
template <class T> std::vector<Sign<T>> signs(const mpi::Communicator& comm, const Elements<T>& mine,
                                              std::int64_t first_row);

#define TILEWISE_SIGNS(form, T)                                   \
    form template std::vector<Sign<T>> signs(const Elements<T>&); \
    form template std::vector<Sign<T>> signs(const mpi::Communicator&, const Elements<T>&, std::int64_t);
TILEWISE_SIGNS(extern, float)
TILEWISE_SIGNS(extern, double)
TILEWISE_SIGNS(extern, kernel::Complex)

}  // namespace tilewise::svd
