// Gets the memory of both fields at once.
#include "tilewise/stencil/fields.hpp"

#include "tilewise/base/threads.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::stencil {

Fields::Fields(const Context& context, const kernel::FieldShape& shape, Dtype dtype, bool shared)
    : shape_(shape),
      dtype_(dtype) {
    const auto bytes = static_cast<std::size_t>(2 * stride());
    if (!shared) {
        mpi::together(context.comm, [&] { own_ = Buffer(bytes); });
        memory_ = own_.data();
        return;
    }
    exposed_ = mpi::allocate_on_one_node(context.comm, bytes);
    memory_ = exposed_.data;
}

void Fields::touch(int threads) const {
    constexpr std::int64_t worth_threads = std::int64_t{4} << 20;  // bytes
    parallel_ranges(stride() < worth_threads ? 1 : threads, 2 * stride() / page,
                    [&](std::int64_t begin, std::int64_t end, int) {
                        for (std::int64_t index = begin; index < end; ++index) {
                            memory_[index * page] = std::byte{0};
                        }
                    });
}

}  // namespace tilewise::stencil
