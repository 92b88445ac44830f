// Reading, with the checks that a decomposition needs before it starts.
#include "tilewise/svd/source.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tilewise/kernel/transpose.hpp"
#include "tilewise/mpi/datatype.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/svd/svd.hpp"

namespace tilewise::svd {
namespace {

using grid::Partition;
using grid::Range;
using mpi::check;

constexpr auto item = static_cast<std::int64_t>(sizeof(double));
/// Powers of two that the largest magnitude may be away from 1: the sum of many squares then neither overflows nor loses what counts.
constexpr int most_exponent = 128;

double* numbers(const Buffer& buffer) { return reinterpret_cast<double*>(buffer.data()); }

Buffer copy_of(const Buffer& buffer, std::int64_t count) {
    Buffer copy(buffer.bytes());
    std::memcpy(copy.data(), buffer.data(), static_cast<std::size_t>(count * item));
    return copy;
}

}  // namespace

Work::Work(const io::Region& a) : region(a), flipped(a.wanted_rows() < a.wanted_columns()) {
    if (flipped) {
        region.transposed = !region.transposed;
    }
    m = region.wanted_rows();
    n = region.wanted_columns();
}

Source::Source(Context& context, const Work& work, const std::string& strategy, const io::Hints& hints) : work_(work) {
    input_.emplace(context, work.region, strategy, hints);
}

grid::Share Source::share_of(int rank, int ranks) const {
    const Range all_rows{0, work_.m}, all_columns{0, work_.n};
    if (dealt_ == Dealt::rows || !work_.by_columns()) {
        return grid::Block{Partition(work_.m, ranks)[rank], all_columns};
    }
    return grid::Block{all_rows, Partition(work_.n, ranks)[rank]};
}

Range Source::rows(const Context& context) const {
    return Partition(work_.m, context.comm.size())[context.comm.rank()];
}

void Source::read(Context& context, Dealt dealt, const io::Region& a) {
    dealt_ = dealt;
    const auto wanted = [this, ranks = context.comm.size()](int rank) { return share_of(rank, ranks); };
    size_ = wanted(context.comm.rank()).size();
    mpi::together(context.comm,
                  [&] { share_ = Buffer(std::max<std::size_t>(1, static_cast<std::size_t>(size_ * item))); });
    input_->load(context, Dtype::float64, wanted, share_.data());
    const Timed timed(context.ledger, context.ledger.phase(), Step::convert, "check");
    check_finite(context, a);
    choose_scale(context);
}

void Source::check_finite(Context& context, const io::Region& a) const {
    constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
    const std::int64_t columns = a.wanted_columns();
    const double* data = numbers(share_);
    std::int64_t first = none;  // the place in A, counted row by row, times 4, and which number it is
    double sum = 0;
    for (std::int64_t i = 0; i < size_; ++i) {
        sum += data[i] * 0;
    }
    if (!(sum == 0)) {
        // In memory the stored rows follow each other: those of W, or its columns.
        const grid::Share share = share_of(context.comm.rank(), context.comm.size());
        const grid::Share stored = work_.region.stored(share);
        const std::int64_t width = stored.width(), top = stored.rows[0].begin, left = stored.columns[0].begin;
        const bool turned = work_.by_columns() != work_.flipped;  // what is stored, seen from A
        for (std::int64_t i = 0; i < size_; ++i) {
            if (!std::isfinite(data[i])) {
                const std::int64_t down = top + i / width, across = left + i % width;
                const std::int64_t place = turned ? across * columns + down : down * columns + across;
                first = std::min(first, 4 * place + (std::isnan(data[i]) ? 0 : data[i] > 0 ? 1 : 2));
            }
        }
    }
    std::int64_t found = none;
    check(MPI_Allreduce(&first, &found, 1, MPI_INT64_T, MPI_MIN, context.comm.get()), "MPI_Allreduce");
    if (found == none) {
        return;
    }
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const std::int64_t place = found / 4, kind = found % 4;
    mpi::together(context.comm, [&] {
        refuse_number(a, place / columns, place % columns,
                      kind == 0   ? std::numeric_limits<double>::quiet_NaN()
                      : kind == 1 ? infinity
                                  : -infinity);
    });
}

void Source::choose_scale(Context& context) {
    double* data = numbers(share_);
    double mine = 0, largest = 0;
    for (std::int64_t i = 0; i < size_; ++i) {
        mine = std::max(mine, std::abs(data[i]));
    }
    check(MPI_Allreduce(&mine, &largest, 1, MPI_DOUBLE, MPI_MAX, context.comm.get()), "MPI_Allreduce");
    int exponent = 0;
    std::frexp(largest, &exponent);
    if (largest == 0 || std::abs(exponent) <= most_exponent) {
        return;
    }
    exponent = std::max(exponent, -1020);  // the scale itself must be a number
    scale_ = std::ldexp(1.0, -exponent);
    for (std::int64_t i = 0; i < size_; ++i) {
        data[i] *= scale_;
    }
}

void Source::copy_rows(std::int64_t begin, std::int64_t count, double* to) const {
    if (!work_.by_columns()) {
        kernel::transpose(share_.data() + begin * work_.n * item, work_.n * item, count, work_.n, sizeof(double),
                          reinterpret_cast<std::byte*>(to), count * item, 1);
        return;
    }
    const std::int64_t height = size_ / work_.n;
    for (std::int64_t column = 0; column < work_.n; ++column) {
        std::memcpy(to + column * count, numbers(share_) + column * height + begin,
                    static_cast<std::size_t>(count * item));
    }
}

Buffer Source::whole(Context& context, bool again) {
    const int ranks = context.comm.size(), me = context.comm.rank();
    Buffer all;
    if (ranks == 1) {
        mpi::together(context.comm, [&] { all = again ? copy_of(share_, size_) : std::move(share_); });
    } else {
        mpi::together(context.comm, [&] {
            if (me == 0) {
                all = Buffer(static_cast<std::size_t>(work_.m * work_.n * item));
            }
        });
        const Timed timed(context.ledger, Phase::exchange, "gather");
        if (me > 0) {
            const mpi::Span span(size_, MPI_DOUBLE);
            check(MPI_Send(share_.data(), span.count(), span.type(), 0, 0, context.comm.get()), "MPI_Send");
        } else {
            std::memcpy(all.data(), share_.data(), static_cast<std::size_t>(size_ * item));
            std::int64_t place = size_;
            for (int rank = 1; rank < ranks; ++rank) {
                const std::int64_t count = share_of(rank, ranks).size();
                const mpi::Span span(count, MPI_DOUBLE);
                check(MPI_Recv(numbers(all) + place, span.count(), span.type(), rank, 0, context.comm.get(),
                               MPI_STATUS_IGNORE),
                      "MPI_Recv");
                place += count;
                context.ledger.count().exchanged += count * item;
                ++context.ledger.count().messages;
            }
        }
        if (!again) {
            share_ = Buffer();
        }
    }
    mpi::together(context.comm, [&] {
        if (me == 0 && !work_.by_columns()) {
            Buffer columns(all.bytes());
            kernel::transpose(all.data(), work_.n * item, work_.m, work_.n, sizeof(double), columns.data(),
                              work_.m * item, context.threads);
            all = std::move(columns);
        }
    });
    return all;
}

}  // namespace tilewise::svd
