// Sums from the small end, so that small numbers count; two looks at each column for its sign, how large its largest
// element is and which is the first that comes near; and one output after the other, U·diag(s) scaled into memory of
// its own.
#include "tilewise/svd/result.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/mpi/datatype.hpp"
#include "tilewise/mpi/together.hpp"

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

/// Shares are lists of ranges, and every strategy wants those of all ranks: blocks are, so that four numbers tell each.
std::vector<grid::Share> shares_of_all(const mpi::Communicator& comm, const grid::Share& mine) {
    std::array<std::int64_t, 4> sent{};
    if (mine.size() > 0) {
        sent = {mine.rows[0].begin, mine.rows[0].end, mine.columns[0].begin, mine.columns[0].end};
    }
    std::vector<std::array<std::int64_t, 4>> got(static_cast<std::size_t>(comm.size()));
    check(MPI_Allgather(sent.data(), 4, MPI_INT64_T, got.data(), 4, MPI_INT64_T, comm.get()), "MPI_Allgather");
    std::vector<grid::Share> shares;
    for (const auto& [top, bottom, left, right] : got) {
        shares.emplace_back(grid::Block{{top, bottom}, {left, right}});
    }
    return shares;
}

/// U·diag(s) of some rows of U.
template <class T> void scale_columns(const std::byte* u, std::byte* us, std::int64_t rows,
                                      const std::vector<double>& s, std::int64_t parts) {
    const auto* from = reinterpret_cast<const T*>(u);
    auto* to = reinterpret_cast<T*>(us);
    const auto columns = parts * static_cast<std::int64_t>(s.size());
    for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) {
            to[i * columns + j] =
                static_cast<T>(static_cast<double>(from[i * columns + j]) * s[static_cast<std::size_t>(j / parts)]);
        }
    }
}

}  // namespace

double squares_from(const std::vector<double>& sigma, std::int64_t from) {
    double sum = 0;
    for (std::int64_t j = std::ssize(sigma) - 1; j >= from; --j) {
        const double part = sigma.front() > 0 ? sigma[static_cast<std::size_t>(j)] / sigma.front() : 0;
        sum += part * part;
    }
    return sum;
}

std::int64_t fewest_with(const std::vector<double>& sigma, double least) {
    double sum = 0;
    for (std::int64_t j = 0; j < std::ssize(sigma); ++j) {
        const double part = sigma.front() > 0 ? sigma[static_cast<std::size_t>(j)] / sigma.front() : 0;
        sum += part * part;
        if (sum >= least) {
            return j + 1;
        }
    }
    return std::ssize(sigma) + 1;
}

std::int64_t components_with(const std::vector<double>& sigma, double share) {
    constexpr double rounding = 1e-14;
    return std::min<std::int64_t>(std::ssize(sigma),
                                  fewest_with(sigma, share * squares_from(sigma, 0) * (1 - rounding)));
}

double left_by(const std::vector<double>& sigma, std::int64_t count) {
    const double all = squares_from(sigma, 0);
    return all > 0 ? std::sqrt(squares_from(sigma, count) / all) : 0;
}

void say_left(Diagnostics& diagnostics, double left, std::int64_t all) {
    if (diagnostics.components < all) {
        const double rounding = 4 * std::numeric_limits<double>::epsilon() * std::sqrt(static_cast<double>(all));
        diagnostics.error_estimate = std::max(left, rounding);
        diagnostics.error_rounding = rounding;
    }
}

double range_of(const std::vector<double>& magnitudes) {
    double least = std::numeric_limits<double>::infinity(), most = 0;
    for (const double value : magnitudes) {
        least = value > 0 ? std::min(least, value) : least;
        most = std::max(most, value);
    }
    return most / least;
}

void refuse_overflow(const Context& context, const io::Region& a, double largest, Dtype dtype) {
    mpi::together(context.comm, [&] {
        const double most = real_type(dtype) == Dtype::float32 ? static_cast<double>(std::numeric_limits<float>::max())
                                                               : std::numeric_limits<double>::max();
        if (!(largest <= most)) {
            throw UsageError(a.name + ": its largest singular value is beyond what " +
                             std::string(name_of(real_type(dtype))) +
                             " holds; scale its numbers down, by a power of two to keep all digits");
        }
    });
}

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

#define TILEWISE_SIGNS(T)                                    \
    template std::vector<Sign<T>> signs(const Elements<T>&); \
    template std::vector<Sign<T>> signs(const mpi::Communicator&, const Elements<T>&, std::int64_t);
TILEWISE_SIGNS(float)
TILEWISE_SIGNS(double)
TILEWISE_SIGNS(kernel::Complex)

void narrow(std::byte* data, std::int64_t count, Dtype to) {
    if (real_type(to) != Dtype::float32) {
        return;
    }
    count *= is_complex(to) ? 2 : 1;
    for (std::int64_t i = 0; i < count; ++i) {
        double value = 0;
        std::memcpy(&value, data + i * 8, 8);
        const auto rounded = static_cast<float>(value);
        std::memcpy(data + i * 4, &rounded, 4);
    }
}

Files cut_to(const Files& files, std::int64_t components) {
    Files cut = files;
    cut.s.columns = components;
    for (std::optional<io::Region>* file : {&cut.u, &cut.us}) {
        if (*file) {
            (*file)->columns = components;
        }
    }
    if (cut.vt) {
        cut.vt->rows = components;
    }
    return cut;
}

Writer::Writer(Context& context, const Files& files, const Options& options)
    : options_(options),
      files_(std::make_unique<Files>(files)) {
    if (options.energy <= 0) {
        open(context);
    }
}

void Writer::open(Context& context) {
    const auto opened = [&](const io::Region& region) {
        return std::make_unique<io::Output>(context, region, options_.write, options_.hints, false);
    };
    s_ = opened(files_->s);
    u_ = files_->u ? opened(*files_->u) : nullptr;
    vt_ = files_->vt ? opened(*files_->vt) : nullptr;
    us_ = files_->us ? opened(*files_->us) : nullptr;
}

void Writer::write(Context& context, Part& part) {
    if (!s_) {
        *files_ = cut_to(*files_, std::ssize(part.s));
        open(context);
    }
    const auto count = static_cast<std::int64_t>(files_->s.columns);
    std::vector<double> all;
    mpi::together(context.comm, [&] {
        all = part.s;
        all.resize(static_cast<std::size_t>(count));
    });
    if (us_) {
        const mpi::Span span(count, MPI_DOUBLE);
        check(MPI_Bcast(all.data(), span.count(), span.type(), 0, context.comm.get()), "MPI_Bcast");
        Buffer scaled;
        mpi::together(context.comm, [&] {
            const Dtype dtype = files_->us->dtype;
            scaled = Buffer(std::max<std::size_t>(1, static_cast<std::size_t>(part.u_share.size()) * size_of(dtype)));
            (real_type(dtype) == Dtype::float32
                 ? scale_columns<float>
                 : scale_columns<double>)(part.u, scaled.data(), part.u_share.height(), all, is_complex(dtype) ? 2 : 1);
        });
        store(context, *us_, part.u_share, scaled.data());
    }
    if (u_) {
        store(context, *u_, part.u_share, part.u);
    }
    if (vt_) {
        store(context, *vt_, part.vt_share, part.vt);
    }
    auto* s = reinterpret_cast<std::byte*>(all.data());
    narrow(s, count, files_->s.dtype);
    const bool mine = context.comm.rank() == 0;
    store(context, *s_, mine ? grid::Share(grid::Block{{0, 1}, {0, count}}) : grid::Share(), s);
}

void Writer::store(Context& context, io::Output& output, const grid::Share& mine, std::byte* data) const {
    const std::vector<grid::Share> shares = shares_of_all(context.comm, mine);
    output.store(context, [&](int rank) { return shares[static_cast<std::size_t>(rank)]; }, data);
}

void Writer::finish(Context& context, bool sync) {
    for (io::Output* output : {u_.get(), s_.get(), vt_.get(), us_.get()}) {
        if (output != nullptr) {
            output->finish(context, sync);
        }
    }
}

}  // namespace tilewise::svd
