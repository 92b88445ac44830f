// The two states that sweeps go to and fro between, in memory that others may reach or not, and numbers between them
// and files: what a file holds becomes a number to compute with, and what was computed is rounded to what a file can
// hold.
#pragma once

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/memory.hpp"
#include "tilewise/kernel/sweep/sweep.hpp"
#include "tilewise/mpi/context.hpp"
#include "tilewise/mpi/window.hpp"
#include "tilewise/stencil/stencil.hpp"

namespace tilewise::stencil {

/// Two fields of one shape in one piece of memory, on huge pages where they are large: 2 · shape.elements numbers,
/// rounded up to pages.
class Fields {
public:
    /// `shared`: in memory that all ranks of the node map. @note Collective; throws the same Error on every rank.
    Fields(const Context& context, const kernel::FieldShape& shape, Dtype dtype, bool shared);

    /// The same memory for fields of another shape, which take no more of it. `whole` must live as long as this.
    Fields(const Fields& whole, const kernel::FieldShape& shape)
        : shape_(shape),
          dtype_(whole.dtype_),
          memory_(whole.memory_) {}

    /// Makes the system give all pages now, by all threads, so that the first sweeps do not wait for them. Not
    /// collective.
    void touch(int threads) const;

    const kernel::FieldShape& shape() const { return shape_; }
    Dtype dtype() const { return dtype_; }
    std::int64_t item() const { return static_cast<std::int64_t>(size_of(dtype_)); }
    std::int64_t stride() const { return stride_of(shape_, dtype_); }  ///< bytes from the first field to the second
    std::byte* operator[](int field) const { return memory_ + field * stride(); }
    std::byte* at(int field, std::int64_t row, std::int64_t column) const {
        return (*this)[field] + offset_of(shape_, dtype_, row, column);
    }
    std::byte* memory() const { return memory_; }
    const mpi::Exposed& exposed() const { return exposed_; }

    /// The same of a field that lies elsewhere, such as a neighbour's.
    static std::int64_t stride_of(const kernel::FieldShape& shape, Dtype dtype) {
        return rounded_to_pages(shape.elements * static_cast<std::int64_t>(size_of(dtype)));
    }
    static std::int64_t offset_of(const kernel::FieldShape& shape, Dtype dtype, std::int64_t row, std::int64_t column) {
        return (shape.origin + row * shape.pitch + column) * static_cast<std::int64_t>(size_of(dtype));
    }

private:
    kernel::FieldShape shape_;
    Dtype dtype_;
    Buffer own_;
    mpi::Exposed exposed_;
    std::byte* memory_ = nullptr;
};

/// Converts a dense block as a file has it to the rows of a field that begin at cell (row, column). Returns how many of
/// its numbers are NaN or infinite. `line`: numbers from one row of it to the next; 0: it is as wide as the cells.
std::int64_t fill_field(const std::byte* dense, Dtype from, bool swap_bytes, const Fields& fields, int field,
                        const grid::Block& cells, int threads, std::int64_t line = 0);

/// The other way, with all the rounding; `dense` and the field must not overlap. Integers are held to their range, and
/// NaN becomes 0.
Tally take_from_field(const Fields& fields, int field, const grid::Block& cells, std::byte* dense, Dtype to,
                      bool swap_bytes, int threads);

/// The cells of a field that is the block of `rank`.
inline grid::Block own_cells(const Layout& layout, int rank) {
    const grid::Block block = layout.block(rank);
    return {{0, block.rows.size()}, {0, block.columns.size()}};
}

/// Reads planes of a file, block by block.
class Source {
public:
    /// `region` must live as long as this. @note Collective.
    Source(Context& context, const io::Region& region, const Layout& layout, const Planes& planes,
           const Options& options);

    /// Reads this rank's block of a plane; it stays here, or in the second field until that is used. @note Collective.
    void read(Context& context, std::int64_t plane, const Fields& fields);
    /// Makes what was read the state of the first field; the numbers that are not finite. Not collective.
    std::int64_t fill(const Context& context, const Fields& fields) const;

private:
    const io::Region& region_;
    Layout layout_;
    Planes planes_;
    io::Input input_;
    bool keep_;
    Buffer own_;
    const std::byte* raw_ = nullptr;
};

/// Blocks on their way to files, where the second field does not do; one of each for all files, as they are written one
/// after the other.
struct Staging {
    Buffer wide, transposed;  ///< in a type wider than the field's; in the other order of storage
};

/// Which block of a plane a rank has, as it is stored.
using BlockOf = std::function<grid::Block(int rank)>;

/// How states in the midst of a job are read and written, which lie in one file, whatever the others are.
inline io::StrategyKind of_states(io::StrategyKind kind) {
    return kind == io::StrategyKind::per_rank ? io::StrategyKind::positioned : kind;
}

/// Writes planes to a file.
class Sink {
public:
    /// `region` must live as long as this. @note Collective.
    Sink(Context& context, const io::Region& region, const Planes& planes, io::StrategyKind write,
         const io::Hints& hints);

    /// Writes each rank's block of the plane, as it is stored: of this rank these `cells` of `field`, using the other
    /// field's memory and what `staging` has, which may be lent to others when it returns. Planes come in order.
    /// Returns what this rank's numbers lost. @note Collective.
    Tally write(Context& context, std::int64_t plane, const BlockOf& block_of, const Fields& fields, int field,
                const grid::Block& cells, Staging& staging);
    /// @note Collective.
    void finish(Context& context, bool sync) { output_.finish(context, sync); }

private:
    const io::Region& region_;
    Planes planes_;
    io::Output output_;
};

}  // namespace tilewise::stencil
