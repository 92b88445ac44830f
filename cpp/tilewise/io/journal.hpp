// What lets a job go on after a death: files of which logs name pieces, each with a checksum.
//
//     a line of a log     0 1024 512 1024 9c1d… 77aa…       rows and columns [begin, end) as stored, checksum of the
//                                                           numbers, checksum of the line
//
//     .C.npy.….part       [ ▓▓ | ▓▓ | ░░ ]      the numbers; ░░ was on its way when a rank died
//     .C.npy.….journal/   job.json              the front's: which job this is
//                         0-0.log  0-1.log      each rank's of the first start …
//                         1-0.log               … and of the next, on any number of ranks
//
// A log says what to look at, and never what to believe: each piece that it names is read again, and its checksum
// compared, before the job goes on. So a line may be there before its numbers are on the disk, and nothing has to wait.
// Design: docs/design/publication.md
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tilewise/base/clock.hpp"
#include "tilewise/grid/share.hpp"
#include "tilewise/io/file.hpp"
#include "tilewise/io/region.hpp"
#include "tilewise/mpi/context.hpp"

namespace tilewise::io {

/// A rectangle of the stored matrix that a log names, of the start with that number.
struct Standing {
    int start = 0;
    grid::Block block;
    std::uint64_t sum = 0;
};

/// One rank's log: lines are appended whole, by one call each, so that a death leaves at most one that is torn.
class Log {
public:
    /// Throws IoError.
    Log(const std::string& folder, const std::string& name);

    /// Appends `words` and their checksum. Throws IoError.
    void add(const std::string& words) const;
    void flush() const;

private:
    std::string folder_;
    Descriptor descriptor_;
};

/// A binary file of which logs name pieces.
class PieceFile {
public:
    /// Throws IoError.
    explicit PieceFile(const Region& region);

    /// Which of the pieces hold what was written; ranks share the reading. Throws the same Error on every rank.
    /// @note Collective.
    std::vector<bool> right(Context& context, const std::vector<Standing>& pieces) const;
    /// Writes down that the rectangle is there, which lies in `data` as it does in the file, without gaps: lines that
    /// begin with `prefix`, each of at most 8 MiB. Throws IoError. Not collective.
    void write_down(const Log& log, const std::string& prefix, const grid::Block& stored, const std::byte* data) const;
    /// Throws IoError.
    void flush() const;
    const Region& region() const { return region_; }

private:
    bool is_right(const Standing& piece, Counters& count, std::vector<std::byte>& buffer) const;

    Region region_;
    Descriptor descriptor_;
};

struct JournalOptions {
    std::string folder;              ///< empty: there is no journal
    int start = 0;                   ///< how many starts there were before this one
    bool flushed = false;            ///< numbers are on the disk before their line
    std::vector<Standing> standing;  ///< what earlier starts wrote down
};

/// What was found when a job went on.
struct Resumed {
    std::int64_t kept = 0;     ///< pieces that stand where they should
    std::int64_t spoilt = 0;   ///< pieces that were named and are not what was written
    std::int64_t started = 0;  ///< starts before this one
};

/// Whether somebody asks the job whose journal is in `folder` to end with what there is by now. Not collective.
bool stop_asked(const std::string& folder);

class Journal {
public:
    /// Opens this rank's log, and looks at all that earlier starts wrote down; ranks share that. `region` is one binary
    /// file. Throws IoError. @note Collective.
    Journal(Context& context, const Region& region, const JournalOptions& options);

    /// Whether all of a rectangle stands there, written by one start. Not collective; the same on every rank.
    bool holds(const grid::Block& stored) const;
    /// Writes down that this rank has written the rectangle, which lies in `data` as it does in the file, without gaps.
    /// Throws IoError. Not collective.
    void wrote(const grid::Block& stored, const std::byte* data);
    const Resumed& resumed() const { return resumed_; }
    /// Whether somebody asks this job to end with what there is by now. Not collective.
    bool stop_asked() const { return io::stop_asked(folder_); }

private:
    std::string folder_;
    bool flushed_;
    std::optional<PieceFile> part_;
    std::optional<Log> log_;
    std::vector<Standing> standing_;  ///< only what is right
    Resumed resumed_;
};

/// A journal where the options name one. @note Collective.
std::unique_ptr<Journal> make_journal(Context& context, const Region* region, const JournalOptions& options);

/// Throws on every rank what ends a job in time, if rank 0 finds that somebody asks for it. @note Collective.
void stop_together(const Context& context, const Journal* journal);

/// What a job that was asked to end throws: all that it has done is written down.
Error stopped();

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

/// States of a job that works in memory, or from file to file, kept in turn in two files: what lets it go on from the
/// newest that is whole.
///
///     .B.npy.….journal/   0.state  ▓▓▓▓▓▓▓▓   after 4000 sweeps: whole
///                         1.state  ▓▓▓▓▒▒▒▒   after 5000: being written when a rank died
///                         0-0.state.log …     each rank's of the first start
///
///     a line of a log     0 4000 0 1024 512 1024 9c1d… 77aa…    slot, version and a piece of the state
///                         0 4000 whole 3ff0000000000000 77aa…   of rank 0, behind all pieces: what else is to be known
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
