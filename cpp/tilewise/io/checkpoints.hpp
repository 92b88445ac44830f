// States of a job that works in memory, or from file to file, kept in turn in two files: what lets it go on after a
// death from the newest that is whole.
//
//     .B.npy.….journal/   0.state  ▓▓▓▓▓▓▓▓   after 4000 sweeps: whole
//                         1.state  ▓▓▓▓▒▒▒▒   after 5000: being written when a rank died
//                         0-0.state.log …     each rank's of the first start
//
//     a line of a log     0 4000 0 1024 512 1024 9c1d… 77aa…    slot, version and a piece of the state
//                         0 4000 whole 3ff0000000000000 77aa…   of rank 0, behind all pieces: what else is to be known
//
// As of a journal, what a log names is read and compared before the job goes on from there.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tilewise/base/clock.hpp"
#include "tilewise/io/pieces.hpp"

namespace tilewise::io {

/// A state that an earlier start wrote down as whole: `version` grows as the job goes on, `facts` are what the
/// operation has to know besides.
struct Saved {
    int slot = 0;
    std::int64_t version = 0;
    std::vector<double> facts;
    std::vector<Standing> pieces;
};

struct CheckpointOptions {
    std::string folder;         ///< empty: there are none
    int start = 0;              ///< how many starts there were before this one
    bool flushed = false;       ///< a state is on the disk before it counts
    double every = 0;           ///< seconds from one to the next; 0: only when the job is asked to end
    double ends = 0;            ///< when the job must have ended, by `clock_seconds` of rank 0; 0: not known
    std::vector<Region> slots;  ///< two binary files of full size
    std::vector<Saved> saved;   ///< newest first
};

/// How a job went on from a state.
struct Restored {
    std::int64_t started = 0;             ///< starts before this one
    std::optional<std::int64_t> version;  ///< of the state; none: from the beginning
    std::int64_t spoilt = 0;              ///< states that were newer, and are not what was written
};

class Checkpoints {
public:
    /// Opens both files and this rank's log, and looks for the newest state that is what was written. Throws IoError
    /// on every rank. @note Collective.
    Checkpoints(Context& context, const CheckpointOptions& options);
    Checkpoints(const Checkpoints&) = delete;
    Checkpoints& operator=(const Checkpoints&) = delete;

    /// The state to go on from; null: there is none.
    const Saved* found() const { return found_ ? &*found_ : nullptr; }
    const Restored& restored() const { return restored_; }
    /// The file with a state.
    const Region& slot(int index) const { return files_[static_cast<std::size_t>(index)]->region(); }
    /// The file that the next state is written to.
    int next() const { return next_; }

    enum class Wish { none, save, save_and_stop };
    /// What is to be done now that a state is at hand; costs a small broadcast every tenth of a second, and nothing in
    /// between. Every rank calls it as often. @note Collective.
    Wish wish(const Context& context);
    /// Writes down that this rank has written the rectangle of the next state, which lies in `data` as it does in the
    /// file, without gaps. Throws IoError. Not collective.
    void wrote(std::int64_t version, const grid::Block& stored, const std::byte* data) const;
    /// Says that all ranks have written theirs: the state counts from here on. @note Collective.
    void complete(const Context& context, std::int64_t version, const std::vector<double>& facts);

private:
    std::string folder_;
    bool flushed_;
    double every_, ends_;
    std::vector<std::unique_ptr<PieceFile>> files_;
    std::optional<Log> log_;
    std::optional<Saved> found_;
    Restored restored_;
    int next_ = 0;
    double last_ = clock_seconds(), looked_ = last_;  ///< seconds when a state was kept, and ranks agreed on what to do
    double wished_ = 0, cost_ = 0;        ///< when the last one was wished for, and the most seconds that one took
    std::int64_t calls_ = 0, until_ = 1;  ///< since they agreed, and how many there are from one time to the next
};

/// Where the options name a folder. @note Collective.
std::unique_ptr<Checkpoints> make_checkpoints(Context& context, const CheckpointOptions& options);

}  // namespace tilewise::io
