// Reading, with the checks that a decomposition needs before it starts.
#include "tilewise/svd/source.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>

#include "tilewise/dist/column_comm.hpp"
#include "tilewise/kernel/transpose/transpose.hpp"
#include "tilewise/mpi/datatype.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::svd {
namespace {

using grid::Partition;
using grid::Range;
using mpi::check;

template <class T> constexpr auto item = static_cast<std::int64_t>(sizeof(T));
/// Powers of two that the largest magnitude may be away from 1: the sum of many squares then neither overflows nor
/// loses what counts.
constexpr int largest_exponent = 128;

template <class T> Array<T> copy_of(const Array<T>& array, std::int64_t count) {
    Array<T> copy(count);
    std::copy_n(array.data(), count, copy.data());
    return copy;
}

}  // namespace

void FirstNotFinite::refuse(const io::Region& a) const {
    if (first_ != none_) {
        constexpr std::array names{"nan", "inf", "-inf"};
        const std::int64_t place = first_ / 4, columns = a.logical_columns();
        throw UsageError(a.name + ": row " + std::to_string(place / columns) + ", column " +
                         std::to_string(place % columns) + " (from 0) is " +
                         names[static_cast<std::size_t>(first_ % 4)] + "; a decomposition needs finite numbers");
    }
}

void FirstNotFinite::refuse(const Context& context, const io::Region& a) {
    first_ = mpi::least_of(context.comm, first_);
    if (first_ != none_) {
        mpi::together(context.comm, [&] { refuse(a); });
    }
}

Work::Work(const io::Region& a) : region(a), transposed(a.logical_rows() < a.logical_columns()) {
    if (transposed) {
        region.transposed = !region.transposed;
    }
    m = region.logical_rows();
    n = region.logical_columns();
}

template <class T>
Source<T>::Source(Context& context, const Work& work, io::StrategyKind strategy, const io::Hints& hints) : work_(work) {
    input_.emplace(context, work.region, strategy, hints);
}

template <class T> grid::Share Source<T>::share_of(int rank, int ranks) const {
    const Range all_rows{0, work_.m}, all_columns{0, work_.n};
    if (layout_ == ReadLayout::rows || !work_.by_columns()) {
        return grid::Block{Partition(work_.m, ranks)[rank], all_columns};
    }
    return grid::Block{all_rows, Partition(work_.n, ranks)[rank]};
}

template <class T> Range Source<T>::rows(const Context& context) const {
    return Partition(work_.m, context.comm.size())[context.comm.rank()];
}

template <class T> void Source<T>::read(Context& context, ReadLayout layout, const io::Region& a) {
    layout_ = layout;
    const auto wanted = [this, ranks = context.comm.size()](int rank) { return share_of(rank, ranks); };
    size_ = wanted(context.comm.rank()).size();
    mpi::together(context.comm, [&] { share_ = Array<T>(size_); });
    input_->load(context, kernel::parts_of<T> == 2 ? Dtype::complex128 : Dtype::float64, wanted, share_.raw());
    const Timed timed(context.ledger, context.ledger.phase(), Step::convert, "check");
    check_finite(context, a);
    choose_scale(context);
}

template <class T> void Source<T>::check_finite(Context& context, const io::Region& a) const {
    const std::int64_t columns = a.logical_columns();
    constexpr std::int64_t parts = kernel::parts_of<T>;
    const double* data = kernel::reals_of(share_.data());
    FirstNotFinite first;
    double sum = 0;
    for (std::int64_t i = 0; i < parts * size_; ++i) {
        sum += data[i] * 0;
    }
    if (!(sum == 0)) {
        // In memory the stored rows follow each other: those of W, or its columns.
        const grid::Share share = share_of(context.comm.rank(), context.comm.size());
        const grid::Share stored = work_.region.stored(share);
        const std::int64_t width = stored.width(), top = stored.rows[0].begin, left = stored.columns[0].begin;
        const bool transposed = work_.by_columns() != work_.transposed;  // what is stored, seen from A
        for (std::int64_t i = 0; i < parts * size_; ++i) {
            const std::int64_t down = top + i / parts / width, across = left + i / parts % width;
            first.note(transposed ? across * columns + down : down * columns + across, data[i]);
        }
    }
    first.refuse(context, a);
}

template <class T> void Source<T>::choose_scale(Context& context) {
    double* data = kernel::reals_of(share_.data());
    const std::int64_t reals = kernel::parts_of<T> * size_;
    double mine = 0;
    for (std::int64_t i = 0; i < reals; ++i) {
        mine = std::max(mine, std::abs(data[i]));
    }
    const double largest = mpi::most_of(context.comm, mine);
    int exponent = 0;
    std::frexp(largest, &exponent);
    if (largest == 0 || std::abs(exponent) <= largest_exponent) {
        return;
    }
    exponent = std::max(exponent, -1020);  // the scale itself must be a number
    scale_ = std::ldexp(1.0, -exponent);
    for (std::int64_t i = 0; i < reals; ++i) {
        data[i] *= scale_;
    }
}

template <class T> void Source<T>::copy_rows(std::int64_t begin, std::int64_t count, T* to) const {
    if (!work_.by_columns()) {
        kernel::transpose(share_.raw() + begin * work_.n * item<T>, work_.n * item<T>, count, work_.n, sizeof(T),
                          reinterpret_cast<std::byte*>(to), count * item<T>, 1);
        return;
    }
    const std::int64_t height = size_ / work_.n;
    for (std::int64_t column = 0; column < work_.n; ++column) {
        std::memcpy(to + column * count, share_.data() + column * height + begin,
                    static_cast<std::size_t>(count * item<T>));
    }
}

template <class T> Array<T> Source<T>::columns(Context& context, bool again) {
    const int ranks = context.comm.size();
    if (work_.by_columns()) {
        Array<T> copy;
        mpi::together(context.comm, [&] { copy = again ? copy_of(share_, size_) : std::move(share_); });
        return copy;
    }
    const Partition all_columns(work_.n, ranks), all_rows(work_.m, ranks);
    Array<T> parts;  // rows of the columns; with one rank they are what was read
    if (ranks > 1) {
        const Timed timed(context.ledger, Phase::exchange, "deal columns");
        const kernel::ColumnsOf<T> mine{share_.data(), work_.n, rows(context).size(), work_.n};  // of Wᵀ
        parts = dist::redistribute_columns(context, mine, dist::owners_of(all_rows),
                                           [&](int rank) { return grid::Block{all_columns[rank], {0, work_.m}}; });
        if (!again) {
            release();
        }
    }
    const Array<T>& from = ranks > 1 ? parts : share_;
    const std::int64_t width = all_columns[context.comm.rank()].size();
    Array<T> columns;
    mpi::together(context.comm, [&] {
        columns = Array<T>(work_.m * width);
        kernel::transpose(from.raw(), width * item<T>, work_.m, width, sizeof(T), columns.raw(), work_.m * item<T>,
                          context.threads);
    });
    if (!again) {
        release();
    }
    return columns;
}

template class Source<double>;
template class Source<kernel::Complex>;

}  // namespace tilewise::svd
