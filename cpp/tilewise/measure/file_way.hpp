// How one rank's blocks get into the sample files and out again: one call a block, or one call of a strategy for all.
//
//      one call a block     collective, split_collective, independent, positioned, mapped, per_rank: the file is opened
//                           before the clock starts, and closed after it stops
//      one call for all     sieve, two_phase, uncached, root, root_collective: what they do lies between the ranks and
//                           over many blocks; the blocks are rows (or parts of rows) of a matrix of bytes, and
//                           opening counts
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tilewise/base/error.hpp"
#include "tilewise/base/memory.hpp"
#include "tilewise/measure/file_place.hpp"
#include "tilewise/mpi/context.hpp"

namespace tilewise::measure {

/// What every way is told.
struct WayFields {
    Context& context;
    const FilePlace& place;
    BlockMemory& memory;
    std::string name;  ///< of the strategy
    bool counts;       ///< whether to look what MPI says it moved
    int shift;         ///< a rank reads the blocks of the rank so many above it

    /// Whose blocks a rank moves.
    int owner(int rank, bool writing) const { return writing ? rank : (rank + shift) % place.ranks; }
    int owner(bool writing) const { return owner(context.comm.rank(), writing); }
};

class FileWay {
public:
    FileWay() = default;
    FileWay(const FileWay&) = delete;
    FileWay& operator=(const FileWay&) = delete;
    virtual ~FileWay() = default;

    /// Makes everything ready that is not timed. Throws alike on every rank. @note Collective.
    virtual void open(bool writing) = 0;
    /// Moves all blocks of this rank, and, if `flush`, waits until the disk has what was written. What fails on this
    /// rank is returned, since others may still be at it, or is thrown alike on every rank. @note Collective.
    virtual std::optional<Error> move(bool writing, bool flush) = 0;
    /// @note Collective.
    virtual void close() = 0;
    /// What a reader must know of this way's seconds; empty: nothing.
    virtual std::string note() const { return ""; }
};

/// Why a strategy cannot do this in this layout and with this cache; empty where it can. Throws UsageError for an
/// unknown name.
std::string refuses(const std::string& name, FileLayout layout, const std::string& cache);

/// Whether a strategy is measured with one call a block.
bool is_blockwise(const std::string& name);

/// Bytes of host memory that its way needs on each rank where calls cannot reach the blocks themselves.
std::int64_t stage_bytes(const std::string& name, const FilePlace& place);

std::unique_ptr<FileWay> make_way(const WayFields& fields);

/// GPUDirect Storage, which is no strategy of jobs: `gpudirect`.
std::unique_ptr<FileWay> make_gpudirect(const WayFields& fields);
/// Why it cannot do this here; empty where it can. The same on every rank. @note Collective.
std::string refuses_gpudirect(const mpi::Communicator& comm, const std::string& buffer, const std::string& cache);

}  // namespace tilewise::measure
