// What all ways to decompose share once they have found something: how many components are kept, which way the vectors
// point, and the files, of which each rank writes its rows of U, and its rows or columns of Vᵀ.
//
// The element of largest magnitude in each column of U is positive (of complex numbers real as well), so that runs on
// different ranks agree.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewise/kernel/scalar.hpp"
#include "tilewise/mpi/communicator.hpp"
#include "tilewise/svd/svd.hpp"

namespace tilewise::svd {

/// The fewest of these, which descend, with Σ (σ/σ₁)² of `least` or more; one more than there are where all have less.
std::int64_t fewest_with(const std::vector<double>& sigma, double least);

/// Σ (σ/σ₁)² over [from, …).
double squares_from(const std::vector<double>& sigma, std::int64_t from);

/// The fewest with `share` of the squares of all, to rounding; one at least.
std::int64_t components_with(const std::vector<double>& sigma, double share);

/// What the first `count` leave of the matrix in the Frobenius norm, relative to all.
double left_by(const std::vector<double>& sigma, std::int64_t count);

/// gesdd and two_stage err in each singular value by rounding of the largest one: one smaller by more than this loses
/// the thirteenth digit, which rotations keep where rows or columns differ as much in scale.
inline constexpr double most_range = 1e3;

/// The largest of some magnitudes over the smallest that is not 0.
double range_of(const std::vector<double>& magnitudes);

/// UsageError where the largest singular value has no place in the type of the result, before anything is written.
/// @note Collective; all ranks know it.
void refuse_overflow(const Context& context, const io::Region& a, double largest, Dtype dtype);

/// Tells `diagnostics` what the components leave of A, where these are not all of `all` singular values: as found from
/// the others.
void say_left(Diagnostics& diagnostics, double left, std::int64_t all);

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

/// The same of a matrix whose rows pass by in panels, the last ones first.
template <class T> class PassingSigns {
public:
    explicit PassingSigns(std::int64_t columns);

    /// Rows from `first_row` on, row by row without gaps; all that come later are above them. Not collective.
    void note(const T* u, std::int64_t rows, std::int64_t first_row, int threads);
    /// After all rows of all ranks. Of several elements that are nearly the largest on different ranks it may be
    /// another one that counts than if all had been in memory. @note Collective.
    std::vector<Sign<T>> signs(const mpi::Communicator& comm) const;

private:
    std::vector<double> most_;
    std::vector<std::int64_t> rows_;
    std::vector<T> values_;
};

/// This rank's part of the result, in float64 or float32 as the files are; dense, row by row. Blocks may be empty.
struct Part {
    std::vector<double> s;  ///< all of them, descending, on every rank
    std::byte* u = nullptr;
    grid::Share u_share;
    std::byte* vt = nullptr;
    grid::Share vt_share;
};

/// The same files with K components, of which there may have been room for more.
Files cut_to(const Files& files, std::int64_t components);

class Writer {
public:
    /// Gets the disk space for all files, unless `options.energy` leaves their size open until they are written. @note
    /// Collective.
    Writer(Context& context, const Files& files, const Options& options);

    /// Writes every rank's part, which is not kept. Throws the same Error on every rank, or aborts the job where ranks
    /// already wait. @note Collective.
    void write(Context& context, Part& part);
    /// After all is written: flushes where that is wanted, and checks sizes. @note Collective.
    void finish(Context& context, bool sync);

private:
    void open(Context& context);
    void store(Context& context, io::Output& output, const grid::Share& mine, std::byte* data) const;

    const Options& options_;
    std::unique_ptr<Files> files_;  ///< which outputs refer to
    std::unique_ptr<io::Output> u_, s_, vt_, us_;
};

/// Rounds float64 numbers to float32 in place, where `to` is that, and complex ones to complex64.
void narrow(std::byte* data, std::int64_t count, Dtype to);

}  // namespace tilewise::svd
