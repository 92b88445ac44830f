// Writes what a decomposition found: each rank its rows of U, and its rows or columns of Vᵀ.
#pragma once

#include <vector>

#include "tilewise/svd/svd.hpp"

namespace tilewise::svd {

/// This rank's part of the result, in float64 or float32 as the files are; dense, row by row. Blocks may be empty.
struct Part {
    std::vector<double> s;  ///< on rank 0: all of them, descending
    std::byte* u = nullptr;
    grid::Share u_share;
    std::byte* vt = nullptr;
    grid::Share vt_share;
};

class Writer {
public:
    /// Gets the disk space for all files. `files` must live as long as this. @note Collective.
    Writer(Context& context, const Files& files, const Options& options);

    /// Writes every rank's part, which is not kept. Throws the same Error on every rank, or aborts the job where ranks already wait. @note Collective.
    void write(Context& context, Part& part);
    /// After all is written: flushes where that is wanted, and checks sizes. @note Collective.
    void finish(Context& context, bool sync);

private:
    void store(Context& context, io::Output& output, const grid::Share& mine, std::byte* data) const;

    const Files& files_;
    std::unique_ptr<io::Output> u_, s_, vt_, us_;
};

/// Rounds float64 numbers to float32 in place, where `to` is that.
void narrow(std::byte* data, std::int64_t count, Dtype to);

}  // namespace tilewise::svd
