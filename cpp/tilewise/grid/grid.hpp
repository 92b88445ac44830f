// Arranges ranks in rows and columns, cuts a range into parts, one for each rank along one side, and says which block
// of a matrix a place in that arrangement owns.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tilewise::grid {

/// `spread`: sizes differ by at most one, larger parts first. `last`: equal parts, the last one takes all that is left
/// (what reports 1 and 3 did; it unbalances the ranks, and is there to make that visible).
enum class Remainder { spread, last };
inline constexpr std::array<std::string_view, 2> remainder_names{"spread", "last"};

struct Range {
    std::int64_t begin = 0;
    std::int64_t end = 0;

    std::int64_t size() const { return end - begin; }
    bool operator==(const Range&) const = default;
};

/// [0, count) in `parts` ranges. Any count from 0 on, so parts may be empty.
class Partition {
public:
    Partition(std::int64_t count, int parts, Remainder remainder = Remainder::spread)
        : count_(count),
          parts_(parts),
          remainder_(remainder) {}

    std::int64_t count() const { return count_; }
    int parts() const { return parts_; }

    Range operator[](int part) const { return {cut(part), cut(part + 1)}; }

    /// The part that holds `index`; O(1).
    int part_of(std::int64_t index) const {
        const std::int64_t base = count_ / parts_;
        const std::int64_t extra = remainder_ == Remainder::spread ? count_ % parts_ : 0;
        const std::int64_t in_larger = extra * (base + 1);
        const std::int64_t part = index < in_larger ? index / (base + 1)
                                  : base > 0        ? extra + (index - in_larger) / base
                                                    : parts_ - 1;
        return static_cast<int>(part < parts_ ? part : parts_ - 1);
    }

    std::int64_t largest() const {
        const std::int64_t base = count_ / parts_;
        return remainder_ == Remainder::spread ? base + (count_ % parts_ != 0) : count_ - base * (parts_ - 1);
    }

private:
    std::int64_t cut(int part) const {
        if (part == parts_) {
            return count_;
        }
        const std::int64_t base = count_ / parts_;
        const std::int64_t extra = remainder_ == Remainder::spread ? count_ % parts_ : 0;
        return part * base + (part < extra ? part : extra);
    }

    std::int64_t count_;
    int parts_;
    Remainder remainder_;
};

/// A rectangle of a matrix; may be empty.
struct Block {
    Range rows, columns;

    std::int64_t size() const { return rows.size() * columns.size(); }
    Block transposed() const { return {columns, rows}; }
    bool operator==(const Block&) const = default;
};

struct Place {
    int row = 0;
    int column = 0;
};

/// p × q ranks, numbered row by row.
struct Grid {
    int rows = 1;
    int columns = 1;

    int size() const { return rows * columns; }
    Place place(int rank) const { return {rank / columns, rank % columns}; }
    int rank(Place place) const { return place.row * columns + place.column; }
};

}  // namespace tilewise::grid
