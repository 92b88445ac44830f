// Writes what a decomposition found: each rank its rows of U, and its rows or columns of Vᵀ.
#pragma once

#include <vector>

#include "tilewise/svd/svd.hpp"

namespace tilewise::svd {

/// This rank's part of the result, in float64 or float32 as the files are; dense, row by row. Blocks may be empty.
struct Part {
    std::vector<double> s;  ///< all of them, descending, on every rank
    std::byte* u = nullptr;
    grid::Share u_share;
    std::byte* vt = nullptr;
    grid::Share vt_share;
};

/// The same files with K components, of which there may have been room for more.
Files cut_to(const Files& files, std::int64_t components);

class Writer {
public:
    /// Gets the disk space for all files, unless `options.energy` leaves their size open until they are written. @note
    /// Collective.
    Writer(Context& context, const Files& files, const Options& options);

    /// Writes every rank's part, which is not kept. Throws the same Error on every rank, or aborts the job where ranks
    /// already wait. @note Collective.
    void write(Context& context, Part& part);
    /// After all is written: flushes where that is wanted, and checks sizes. @note Collective.
    void finish(Context& context, bool sync);

private:
    void open(Context& context);
    void store(Context& context, io::Output& output, const grid::Share& mine, std::byte* data) const;

    const Options& options_;
    std::unique_ptr<Files> files_;  ///< which outputs refer to
    std::unique_ptr<io::Output> u_, s_, vt_, us_;
};

/// Rounds float64 numbers to float32 in place, where `to` is that, and complex ones to complex64.
void narrow(std::byte* data, std::int64_t count, Dtype to);

}  // namespace tilewise::svd
