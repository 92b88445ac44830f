// What the tests of the library share: distributions drawn at random, beside the global indices that each rank has
// of them by formulas of the tests' own.
#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <doctest/doctest.h>
#include <random>
#include <string>
#include <vector>

#include "tilewise/tilewise.hpp"

namespace tilewise::test {

using Indices = std::vector<std::int64_t>;
using Random = std::mt19937;

/// The same number on every rank, as all draw in the same sequence.
inline std::int64_t draw(Random& random, std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(most - least + 1));
}

inline int rank_of(MPI_Comm comm) {
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    return rank;
}
inline int size_of_comm(MPI_Comm comm) {
    int size = 0;
    MPI_Comm_size(comm, &size);
    return size;
}

/// Global rows and columns of each of this rank's pieces.
struct Owned {
    Indices rows, columns;
};
struct Distributed {
    Distribution distribution;
    std::vector<Owned> mine;
    std::string name;
};

inline Indices range(std::int64_t begin, std::int64_t end) {
    Indices all;
    for (; begin < end; ++begin) {
        all.push_back(begin);
    }
    return all;
}

/// Part `part` of 0 … count−1, cut into parts that differ by at most one, larger ones first.
inline Indices part_of(std::int64_t count, int part, int parts) {
    std::int64_t begin = 0;
    for (int before = 0; before < part; ++before) {
        begin += count / parts + (before < count % parts ? 1 : 0);
    }
    return range(begin, begin + count / parts + (part < count % parts ? 1 : 0));
}

/// What process `process` has of `count` in blocks of `block`, dealt out from `source` on: ScaLAPACK's rule.
inline Indices cyclic(std::int64_t count, std::int64_t block, int process, int source, int processes) {
    Indices all;
    for (std::int64_t i = 0; i < count; ++i) {
        if ((i / block + source) % processes == process) {
            all.push_back(i);
        }
    }
    return all;
}

inline Distributed distribute(Random& random, std::int64_t rows, std::int64_t columns, int ranks, int rank) {
    std::vector<int> divisors;
    for (int divisor = 1; divisor <= ranks; ++divisor) {
        if (ranks % divisor == 0) {
            divisors.push_back(divisor);
        }
    }
    const int p = divisors[static_cast<std::size_t>(draw(random, 0, std::ssize(divisors) - 1))], q = ranks / p;
    const Order order = draw(random, 0, 1) == 0 ? Order::row_major : Order::column_major;
    const ProcessGrid grid{p, q, order};
    const int row = order == Order::row_major ? rank / q : rank % p,
              column = order == Order::row_major ? rank % q : rank / p;
    switch (draw(random, 0, 6)) {
        case 0:
            return {
                Distribution::by_rows(rows, columns, ranks), {{part_of(rows, rank, ranks), range(0, columns)}}, "rows"};
        case 1:
            return {Distribution::by_columns(rows, columns, ranks),
                    {{range(0, rows), part_of(columns, rank, ranks)}},
                    "columns"};
        case 2:
            return {Distribution::by_blocks(rows, columns, grid),
                    {{part_of(rows, row, p), part_of(columns, column, q)}},
                    "blocks"};
        case 3: {
            const int only = static_cast<int>(draw(random, 0, ranks - 1));
            std::vector<Owned> mine;
            if (only == rank) {
                mine.push_back({range(0, rows), range(0, columns)});
            }
            return {Distribution::on_rank(rows, columns, ranks, only), mine, "one rank"};
        }
        case 4: {  // columns cut anywhere, each strip cut into rows anywhere, pieces given to anybody
            std::vector<OwnedBlock> blocks;
            std::vector<Owned> mine;
            for (std::int64_t left = 0; left < columns;) {
                const std::int64_t right = draw(random, left + 1, columns);
                for (std::int64_t top = 0; top < rows;) {
                    const std::int64_t bottom = draw(random, top + 1, rows);
                    const int owner = static_cast<int>(draw(random, 0, ranks - 1));
                    blocks.push_back({owner, top, bottom, left, right});
                    if (owner == rank) {
                        mine.push_back({range(top, bottom), range(left, right)});
                    }
                    top = bottom;
                }
                left = right;
            }
            return {Distribution::of_blocks(rows, columns, ranks, blocks), mine, "list of blocks"};
        }
        default: {
            const std::int64_t mb = draw(random, 1, 9), nb = draw(random, 1, 9);
            const int row_source = static_cast<int>(draw(random, 0, p - 1)),
                      column_source = static_cast<int>(draw(random, 0, q - 1));
            const int descriptor[9] = {1,
                                       0,
                                       static_cast<int>(rows),
                                       static_cast<int>(columns),
                                       static_cast<int>(mb),
                                       static_cast<int>(nb),
                                       row_source,
                                       column_source,
                                       1};
            return {Distribution::scalapack(descriptor, grid),
                    {{cyclic(rows, mb, row, row_source, p), cyclic(columns, nb, column, column_source, q)}},
                    "block-cyclic " + std::to_string(mb) + "x" + std::to_string(nb)};
        }
    }
}

/// This rank's pieces of a matrix in memory, with a gap behind each row or column that nobody may touch.
template <class T> class Local {
public:
    static constexpr int untouched = 77;

    Local(Random& random, std::int64_t rows, std::int64_t columns, MPI_Comm comm)
        : Local(distribute(random, rows, columns, size_of_comm(comm), rank_of(comm)),
                draw(random, 0, 1) == 0 ? Order::row_major : Order::column_major, draw(random, 0, 3)) {}

    Local(Distributed distributed, Order order, std::int64_t gap)
        : distributed_(std::move(distributed)),
          order_(order),
          gap_(gap) {
        for (const auto& [rows, columns] : distributed_.mine) {
            const auto lines = order == Order::row_major ? rows.size() : columns.size();
            memory_.emplace_back(lines * static_cast<std::size_t>(leading(rows, columns)) + 1, T(untouched));
        }
    }

    template <class F> void fill(F value) {
        visit([&](T& number, std::int64_t i, std::int64_t j) { number = value(i, j); });
    }
    /// How many numbers are not what `right(number, i, j)` wants, and how many lie in a gap and were touched.
    template <class F> int wrong(F right) {
        int count = 0;
        std::vector<std::vector<T>> gaps = memory_;
        std::swap(gaps, memory_);
        visit([&](T& number, std::int64_t, std::int64_t) { number = T(untouched); });
        for (const std::vector<T>& piece : memory_) {
            count += static_cast<int>(std::count_if(piece.begin(), piece.end(), [](T x) { return x != T(untouched); }));
        }
        std::swap(gaps, memory_);
        visit([&](T& number, std::int64_t i, std::int64_t j) { count += right(number, i, j) ? 0 : 1; });
        return count;
    }
    MutableMatrix view() {
        std::vector<Piece<void>> pieces;
        for (std::size_t index = 0; index < memory_.size(); ++index) {
            const auto& [rows, columns] = distributed_.mine[index];
            pieces.push_back({memory_[index].data(), leading(rows, columns)});
        }
        return tilewise::view(distributed_.distribution, dtype_of<T>(), pieces, order_);
    }
    /// Every number of the matrix, row by row, on every rank.
    std::vector<double> whole(MPI_Comm comm) {
        const std::int64_t columns = distributed_.distribution.columns();
        std::vector<double> all(static_cast<std::size_t>(distributed_.distribution.rows() * columns));
        visit([&](T& number, std::int64_t i, std::int64_t j) {
            all[static_cast<std::size_t>(i * columns + j)] = static_cast<double>(number);
        });
        MPI_Allreduce(MPI_IN_PLACE, all.data(), static_cast<int>(all.size()), MPI_DOUBLE, MPI_SUM, comm);
        return all;
    }
    std::string name() const {
        return distributed_.name + (order_ == Order::row_major ? ", row-major" : ", column-major") + ", gap " +
               std::to_string(gap_);
    }

private:
    std::int64_t leading(const Indices& rows, const Indices& columns) const {
        return std::ssize(order_ == Order::row_major ? columns : rows) + gap_;
    }
    template <class F> void visit(F f) {
        for (std::size_t index = 0; index < memory_.size(); ++index) {
            const auto& [rows, columns] = distributed_.mine[index];
            const auto step = static_cast<std::size_t>(leading(rows, columns));
            for (std::size_t i = 0; i < rows.size(); ++i) {
                for (std::size_t j = 0; j < columns.size(); ++j) {
                    f(memory_[index][order_ == Order::row_major ? i * step + j : j * step + i], rows[i], columns[j]);
                }
            }
        }
    }

    Distributed distributed_;
    Order order_;
    std::int64_t gap_;
    std::vector<std::vector<T>> memory_;
};

template <class T> T as(std::int64_t number) {
    if constexpr (std::is_arithmetic_v<T>) {
        return static_cast<T>(number);
    } else {
        return T(static_cast<typename T::value_type>(number));
    }
}

/// A small whole number that depends on its place.
inline std::int64_t number_at(std::int64_t i, std::int64_t j, std::int64_t salt) {
    return (i * 31 + j * 17 + salt * 7 + i * j) % 11 - 5;
}

}  // namespace tilewise::test
