// From a region to a rank's share in memory and back, whatever the strategy: checks, conversion, generated matrices,
// texts, proof.
#pragma once

#include <memory>

#include "tilewise/io/read_back.hpp"
#include "tilewise/io/text.hpp"

namespace tilewise::io {

/// Which share of the matrix, as the operation sees it, a rank wants.
using WantedShare = std::function<grid::Share(int rank)>;

/// One matrix that can be read, once or part after part. All members throw the same Error on every rank, or abort the
/// job where ranks already wait.
class Input {
public:
    /// Checks the file and, for a text, finds its lines. Reads with `strategy`; tiles with `per_rank`, and texts by
    /// panels unless rank 0 alone is to touch the file. `in_parts`: past the page cache, too, every rank reads for
    /// itself, since what comes next is begun early. `region` must live as long as this. @note Collective.
    Input(Context& context, const Region& region, StrategyKind strategy, const Hints& hints, bool in_parts = false);
    ~Input();

    /// Fills `data` with this rank's share in a type that is computed in, stored as `region.stored(share)` without
    /// gaps. @note Collective.
    void load(Context& context, Dtype dtype, const WantedShare& wanted, std::byte* data) const;
    /// The same in the file's own type and byte order. Generated matrices are made in this machine's. @note Collective.
    void load_raw(Context& context, const WantedShare& wanted, std::byte* data) const;
    /// Begins to read what the next `load` of the same share to the same `data` is to find there, on a thread of its
    /// own and where the strategy lets every rank read for itself. Until then, or until `rest`, nobody touches `data`.
    /// Not collective.
    void begin(Context& context, Dtype dtype, const WantedShare& wanted, std::byte* data);
    /// What has begun is of no use any more. Not collective.
    void rest();
    /// Whether `begin` reads anything.
    bool reads_ahead() const { return reads_ahead_; }

private:
    const Region& region_;
    std::optional<Region> uncut_;  // where the region is a part
    const Region& file_;
    Strategy strategy_;
    std::unique_ptr<TextIndex> text_;
    bool past_cache_ = false, reads_ahead_ = false;
    std::unique_ptr<Prefetch> prefetch_;
};

/// A part file that takes one matrix, once or part after part. Errors as above.
class Output {
public:
    /// Gets the disk space where the size is known, so that a full disk is found before anybody writes. `prove`: keep
    /// checksums to compare with. @note Collective.
    Output(Context& context, const Region& region, StrategyKind strategy, const Hints& hints, bool prove);

    /// Writes every rank's share, in the region's own type and byte order. Of a text, parts must be whole rows and come
    /// in order. @note Collective.
    void store(Context& context, const WantedShare& wanted, std::byte* data);
    /// Takes checksums of numbers that somebody else writes to the region; `stored` is a share in its stored order. Not
    /// collective.
    void note(const grid::Share& stored, std::byte* data);
    /// After all is written: flushes to disk if `sync`, and checks the size and, without `prove`, samples. @note
    /// Collective.
    void finish(Context& context, bool sync);
    /// Whether the file gives back all that was written; only with `prove`. @note Collective.
    bool holds_what_was_written(Context& context) const;

private:
    const Region& region_;
    bool prove_;
    Strategy strategy_;
    ReadBack read_back_;
    std::unique_ptr<TextOutput> text_;
};

/// An output as it can be read back once all of it is written: the size that a text came to is known then, so this
/// waits for all ranks. @note Collective.
Region as_written(Context& context, const Region& output);

/// Rank 0 looks whether the files are regular and as large as they should be; all throw if not. @note Collective.
void check_file(Context& context, const Region& region);

}  // namespace tilewise::io
