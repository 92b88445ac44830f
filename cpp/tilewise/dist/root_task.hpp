// Work that rank 0 does with all cores of its node, while the others sleep.
#pragma once

#include <functional>

#include "tilewise/mpi/context.hpp"

namespace tilewise::dist {

/// Waiting ranks look now and then whether rank 0 is done, and leave it their cores in between: MPI's own
/// waiting would keep those busy.
class RootTask {
public:
    /// @note Collective.
    explicit RootTask(Context& context);

    /// Runs `work` on rank 0 alone, free to use every core that a rank of its node is bound to. If it throws,
    /// every rank throws the same Error. `work` must not communicate. @note Collective.
    void run(const std::function<void(int threads)>& work) const;

private:
    Context& context_;
    int threads_ = 1;                   ///< those of the node's ranks together
    std::vector<unsigned char> cores_;  ///< a cpu_set_t: those of the node's ranks together; empty: nobody knows them
};

}  // namespace tilewise::dist
