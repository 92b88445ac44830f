// The two states that sweeps go to and fro between, in memory that others may reach or not.
#pragma once

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/page.hpp"
#include "tilewise/kernel/sweep/sweep.hpp"
#include "tilewise/mpi/context.hpp"
#include "tilewise/mpi/window.hpp"

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

}  // namespace tilewise::stencil
