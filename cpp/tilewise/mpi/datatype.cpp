// Builds derived datatypes from byte displacements, which are 64-bit everywhere, even where MPI's counts are not.
#include "tilewise/mpi/datatype.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

namespace tilewise::mpi {
namespace {

constexpr std::int64_t chunk = std::int64_t{1} << 30;

std::int64_t extent_of(MPI_Datatype item) {
    MPI_Aint lower = 0, extent = 0;
    check(MPI_Type_get_extent(item, &lower, &extent), "MPI_Type_get_extent");
    return extent;
}

/// `count` items side by side, whatever `count` is. Not committed.
Datatype contiguous(std::int64_t count, MPI_Datatype item) {
    Datatype whole;
    if (count <= chunk) {
        check(MPI_Type_contiguous(static_cast<int>(count), item, whole.out()), "MPI_Type_contiguous");
        return whole;
    }
    Datatype piece, pieces, rest;
    check(MPI_Type_contiguous(static_cast<int>(chunk), item, piece.out()), "MPI_Type_contiguous");
    check(MPI_Type_contiguous(static_cast<int>(count / chunk), piece.get(), pieces.out()), "MPI_Type_contiguous");
    check(MPI_Type_contiguous(static_cast<int>(count % chunk), item, rest.out()), "MPI_Type_contiguous");
    const std::array<int, 2> lengths{1, 1};
    const std::array<MPI_Aint, 2> places{0, static_cast<MPI_Aint>(count / chunk * chunk * extent_of(item))};
    const std::array<MPI_Datatype, 2> types{pieces.get(), rest.get()};
    check(MPI_Type_create_struct(2, lengths.data(), places.data(), types.data(), whole.out()),
          "MPI_Type_create_struct");
    return whole;
}

Datatype committed(Datatype type) {
    MPI_Datatype raw = type.get();
    check(MPI_Type_commit(&raw), "MPI_Type_commit");
    return type;
}

/// `count` copies of `item`, `bytes` apart, beginning at byte `start`, in a type that is `extent` bytes long.
Datatype placed(std::int64_t count, MPI_Datatype item, std::int64_t bytes, std::int64_t start, std::int64_t extent) {
    Datatype row, moved, sized;
    // Over 2³⁰ rows the same rows are described as rows of rows.
    if (count > chunk) {
        Datatype inner, outer, rest;
        check(MPI_Type_create_hvector(static_cast<int>(chunk), 1, bytes, item, inner.out()), "MPI_Type_create_hvector");
        check(MPI_Type_create_hvector(static_cast<int>(count / chunk), 1, bytes * chunk, inner.get(), outer.out()),
              "MPI_Type_create_hvector");
        check(MPI_Type_create_hvector(static_cast<int>(count % chunk), 1, bytes, item, rest.out()),
              "MPI_Type_create_hvector");
        const std::array<int, 2> lengths{1, 1};
        const std::array<MPI_Aint, 2> places{0, static_cast<MPI_Aint>(count / chunk * chunk * bytes)};
        const std::array<MPI_Datatype, 2> types{outer.get(), rest.get()};
        check(MPI_Type_create_struct(2, lengths.data(), places.data(), types.data(), row.out()),
              "MPI_Type_create_struct");
    } else {
        check(MPI_Type_create_hvector(static_cast<int>(count), 1, bytes, item, row.out()), "MPI_Type_create_hvector");
    }
    const int one = 1;
    const MPI_Aint displacement = start;
    check(MPI_Type_create_hindexed(1, &one, &displacement, row.get(), moved.out()), "MPI_Type_create_hindexed");
    check(MPI_Type_create_resized(moved.get(), 0, extent, sized.out()), "MPI_Type_create_resized");
    return committed(std::move(sized));
}

/// The items of each range, at their places; `bytes` is an item's extent. Not committed.
Datatype side_by_side(const std::vector<grid::Range>& ranges, MPI_Datatype item, std::int64_t bytes) {
    std::vector<int> lengths;
    std::vector<MPI_Aint> places;
    for (const grid::Range& range : ranges) {
        for (std::int64_t begin = range.begin; begin < range.end; begin += chunk) {
            lengths.push_back(static_cast<int>(std::min(chunk, range.end - begin)));
            places.push_back(static_cast<MPI_Aint>(begin * bytes));
        }
    }
    Datatype all;
    check(MPI_Type_create_hindexed(static_cast<int>(lengths.size()), lengths.data(), places.data(), item, all.out()),
          "MPI_Type_create_hindexed");
    return all;
}

}  // namespace

MPI_Datatype type_of(Dtype dtype) {
    switch (dtype) {
        case Dtype::int8:
            return MPI_INT8_T;
        case Dtype::int16:
        case Dtype::float16:
            return MPI_INT16_T;
        case Dtype::int32:
            return MPI_INT32_T;
        case Dtype::int64:
            return MPI_INT64_T;
        case Dtype::uint8:
            return MPI_UINT8_T;
        case Dtype::uint16:
            return MPI_UINT16_T;
        case Dtype::uint32:
            return MPI_UINT32_T;
        case Dtype::uint64:
            return MPI_UINT64_T;
        case Dtype::float32:
            return MPI_FLOAT;
        case Dtype::float64:
            return MPI_DOUBLE;
        case Dtype::complex64:
            return MPI_C_FLOAT_COMPLEX;
        case Dtype::complex128:
            break;
    }
    return MPI_C_DOUBLE_COMPLEX;
}

Span::Span(std::int64_t count, MPI_Datatype item) : item_(item), count_(static_cast<int>(count)) {
    if (count > std::numeric_limits<int>::max()) {
        derived_ = committed(contiguous(count, item));
        count_ = 1;
    }
}

Span::Span(std::int64_t rows, std::int64_t columns, std::int64_t stride, MPI_Datatype item)
    : Span(stride == columns || rows <= 1 ? rows * columns : 0, item) {
    if (stride != columns && rows > 1) {
        derived_ = strided(rows, columns, stride, item);
        count_ = 1;
    }
}

Datatype strided(std::int64_t rows, std::int64_t columns, std::int64_t stride, MPI_Datatype item) {
    const std::int64_t bytes = extent_of(item);
    const Datatype row = contiguous(columns, item);
    return placed(rows, row.get(), stride * bytes, 0, rows * stride * bytes);
}

Datatype share_of_matrix(std::int64_t rows, std::int64_t columns, const grid::Share& share, MPI_Datatype item) {
    const std::int64_t bytes = extent_of(item);
    if (share.rows.size() <= 1 && share.columns.size() <= 1) {  // a block: the form that libraries know best
        const grid::Range down = share.size() > 0 ? share.rows[0] : grid::Range{};
        const grid::Range across = share.size() > 0 ? share.columns[0] : grid::Range{};
        const Datatype row = contiguous(across.size(), item);
        return placed(down.size(), row.get(), columns * bytes, (down.begin * columns + across.begin) * bytes,
                      rows * columns * bytes);
    }
    const Datatype row = side_by_side(share.columns, item, bytes);
    Datatype one, sized, all;
    check(MPI_Type_create_resized(row.get(), 0, columns * bytes, one.out()), "MPI_Type_create_resized");
    all = side_by_side(share.rows, one.get(), columns * bytes);
    check(MPI_Type_create_resized(all.get(), 0, rows * columns * bytes, sized.out()), "MPI_Type_create_resized");
    return committed(std::move(sized));
}

}  // namespace tilewise::mpi
