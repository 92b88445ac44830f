// Writes and reads as report 4 did, sample by sample, and says of each what happened outside the timed part.
#include "tilewise/measure/file.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <optional>
#include <thread>

#include "tilewise/base/names.hpp"
#include "tilewise/device/block_memory.hpp"
#include "tilewise/device/storage.hpp"
#include "tilewise/io/elements.hpp"
#include "tilewise/io/strategy/uncached.hpp"
#include "tilewise/measure/buffers.hpp"
#include "tilewise/measure/file_sample.hpp"
#include "tilewise/measure/samples.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::measure {
namespace {

constexpr std::array<std::string_view, 3> cache_names{"warm", "cold", "direct"};
constexpr std::array<std::string_view, 3> check_names{"none", "counts", "content"};

void require_sense(const Point& point) {
    const auto least = [](std::int64_t value, std::int64_t bound, const std::string& what) {
        if (value < bound) {
            throw UsageError(what + " " + std::to_string(value) + " makes no sense: at least " + std::to_string(bound) +
                             " is expected");
        }
    };
    least(point.bytes, 1, "a block size of");
    least(point.blocks, 1, "a number of blocks of");
    least(point.shift, 0, "a shift of");
    least(point.gpus, 0, "a number of graphics processors of");
    if (point.path.empty()) {
        throw UsageError("a file measurement needs the folder of the sample file");
    }
    index_of(cache_names, point.cache, "cache state");
    index_of(check_names, point.check, "check");
}

/// "0.1 %"
std::string percent(double share) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.1f %%", share * 100);
    return text.data();
}

FilePlace place_of(const mpi::Communicator& comm, const Point& point) {
    FilePlace place;
    place.ranks = comm.size();
    place.blocks = point.blocks;
    place.bytes = point.bytes;
    place.layout = static_cast<FileLayout>(index_of(layout_names, point.layout, "layout"));
    place.direct = point.cache == "direct" && point.name != "uncached";
    place.path = point.path;
    return place;
}

/// Why the disk does not take the sample files; empty if it does. The same on every rank. @note Collective.
std::string lacks_disk(const mpi::Communicator& comm, const FileHooks& hooks, const FilePlace& place) {
    constexpr double reserve = 1.05;
    std::int64_t free = 0;
    mpi::together(comm, [&] {
        if (comm.rank() == 0) {
            free = hooks.free_on_disk(place.path, comm.size() * place.memory_bytes());
        }
    });
    free = mpi::of_root(comm, free);
    const auto needed = static_cast<std::int64_t>(static_cast<double>(place.total_bytes()) * reserve);
    if (needed <= free) {
        return "";
    }
    return "the disk of " + place.path + " has " + std::to_string(free) + " bytes free, and " + std::to_string(needed) +
           " are needed, 5 % more than the samples have";
}

/// What the strategies of io can be measured with, in their order, and one that jobs do not have.
struct Ability {
    std::string_view name;
    bool in_parts;  ///< a rank moves block by block, each by one call; else all blocks are moved at once
    bool alone;     ///< a rank can have a file for itself, and none waits for another
    bool direct;    ///< past the page cache
};

constexpr std::array abilities{
    Ability{"root", false, false, false},
    Ability{"root_collective", false, false, false},
    Ability{"per_rank", false, true, true},
    Ability{"collective", true, false, false},
    Ability{"split_collective", true, false, false},
    Ability{"independent", true, true, false},
    Ability{"shared_pointer", false, false, false},
    Ability{"ordered", false, false, false},
    Ability{"positioned", true, true, true},
    Ability{"sieve", false, false, false},
    Ability{"mapped", true, true, false},
    Ability{"two_phase", false, false, false},
    Ability{"uncached", false, false, true},
    Ability{"gpudirect", true, true, true},
};
static_assert(abilities.size() == io::strategies.size() + 1, "every strategy of io has its abilities");

const Ability& ability(const std::string& name) {
    std::array<std::string_view, abilities.size()> names;
    for (std::size_t i = 0; i < names.size(); ++i) {
        names[i] = abilities[i].name;
    }
    return abilities[index_of(names, name, "I/O strategy")];
}

/// Why a strategy cannot do this in this layout and with this cache; empty where it can. Throws UsageError for an
/// unknown name.
std::string refuses(const std::string& name, FileLayout layout, const std::string& cache) {
    const Ability& able = ability(name);
    if (name != "gpudirect" && io::strategies.at(static_cast<std::size_t>(io::strategy_named(name))).only_reads) {
        return name + " only reads, but files are measured both ways";
    }
    if (layout == FileLayout::per_rank && !able.alone) {
        return name +
               " works on one shared file; one file per rank works with per_rank, positioned, independent and "
               "mapped";
    }
    if (name == "per_rank" && layout != FileLayout::per_rank) {
        return "per_rank needs the layout per_rank";
    }
    if (cache == "direct" && !able.direct) {
        return name + " uses the page cache; positioned, per_rank and uncached bypass it";
    }
    return "";
}

/// Why GPUDirect Storage cannot do this here; empty where it can. The same on every rank. @note Collective.
std::string refuses_gpudirect(const mpi::Communicator& comm, const std::string& buffer, const std::string& cache) {
    if (buffer != "device") {
        return "gpudirect moves blocks between files and memory of a device: --buffer device";
    }
    if (cache != "direct") {
        return "gpudirect goes past the page cache: --cache direct";
    }
    const std::string own = device::lacks_storage();
    const bool lacking = mpi::any_of(comm, !own.empty());
    const std::string there = own.empty() ? "not on every node" : own;
    return lacking ? "GPUDirect Storage is missing: " + there : "";
}

/// What jobs do not do: blocks go past the page cache from where they lie, or between file and device. `at(slot)` is
/// what a `File` takes for a place in memory.
template <class File, class At> class OneByOne final : public io::OpenFile {
public:
    OneByOne(Context& context, const io::Transfer& transfer, io::Direction direction, const FilePlace& place, int owner,
             At at, std::unique_ptr<File> file)
        : OpenFile(context, transfer, direction),
          place_(place),
          owner_(owner),
          at_(at),
          file_(std::move(file)) {}

    void move() override { move_part(0, place_.blocks * place_.bytes); }
    void move_part(std::int64_t begin, std::int64_t end) override {
        for (std::int64_t block = begin / place_.bytes; block < end / place_.bytes; ++block) {
            const std::int64_t slot = place_.slot(owner_, block), offset = place_.offset(owner_, block);
            reads() ? file_->read(at_(slot), place_.bytes, offset) : file_->write(at_(slot), place_.bytes, offset);
        }
    }
    void close() override {
        if constexpr (requires { file_->close(); }) {
            file_->close();
        }
    }

private:
    const FilePlace& place_;
    int owner_;
    At at_;
    std::unique_ptr<File> file_;
};

/// The blocks of all ranks as parts of a matrix of bytes, which a strategy moves as it moves those of jobs.
///
///      interleaved   row = block:  [ rank 0 | rank 1 | rank 2 ]     a rank has some columns of every row
///      contiguous    row = rank:   [ block 0 | block 1 | …    ]     a rank has one row, which in layout per_rank is
///                                                                   a file: a tile of `per_rank`, else all there is
class Mover {
public:
    Mover(Context& context, const Point& point, const FilePlace& place, BlockMemory& memory)
        : comm_(context.comm),
          point_(point),
          place_(place),
          able_(ability(point.name)),
          memory_(memory) {
        ledger_.start(Phase::input);
        mpi::together(comm_, [&] {
            if (point.name == "gpudirect") {
                storage_.emplace(memory.device_address(), place.memory_bytes());
                return;
            }
            strategy_ = io::make_strategy(io::strategy_named(point.name), {});
            data_ = memory.address();
            if (data_ == nullptr) {
                data_ = stage_ = memory.stage(place.memory_bytes());
            }
        });
    }

    /// Whose blocks a rank moves: it reads those of the rank `shift` above it.
    int owner(int rank, bool writing) const { return writing ? rank : (rank + point_.shift) % place_.ranks; }
    int owner(bool writing) const { return owner(comm_.rank(), writing); }

    /// Makes everything ready that is not timed. @note Collective.
    void open(bool writing) {
        writing_ = writing;
        const int own = owner(writing);
        const io::Direction direction = writing ? io::Direction::write : io::Direction::read;
        const std::string path = place_.path_of(own);
        const bool shared = place_.layout != FileLayout::per_rank || point_.name == "per_rank";
        const auto share_of = [this, shared](int rank) { return share(shared ? owner(rank, writing_) : 0); };
        describe(path);
        transfer_.emplace(io::Transfer{.region = region_, .share_of = share_of, .data = data_});
        transfer_->counts = point_.check != "none";
        const auto one_by_one = [&](auto at, auto file) -> std::unique_ptr<io::OpenFile> {
            using File = typename decltype(file)::element_type;
            return std::make_unique<OneByOne<File, decltype(at)>>(all_, *transfer_, direction, place_, own, at,
                                                                  std::move(file));
        };
        mpi::together(comm_, [&] {
            if (storage_) {
                file_ = one_by_one([](std::int64_t slot) { return slot; },
                                   std::make_unique<device::StorageFile>(*storage_, path, writing));
            } else if (place_.direct) {
                file_ = one_by_one([this](std::int64_t slot) { return data_ + slot; },
                                   std::make_unique<io::UncachedFile>(path, path, io::mode_of(direction), page));
            } else {
                file_ = strategy_.open(shared ? all_ : alone_, *transfer_, direction);
            }
        });
        mpi::together(comm_, [&] {
            if (writing && point_.sync) {
                to_flush_ = std::make_unique<io::PosixFile>(path, path, io::PosixFile::Mode::write);
            }
        });
    }

    /// Moves all blocks of this rank, and, with `sync`, waits until the disk has what was written. What fails on this
    /// rank is returned, since others may still be at it, or is thrown alike on every rank. @note Collective.
    std::optional<Error> move() {
        std::optional<Error> failure;
        // A rank that failed goes on where the others' calls need it.
        const bool go_on = !able_.in_parts || !able_.alone;
        const auto attempt = [&](const auto& act) {
            if (!failure || go_on) {
                try {
                    act();
                } catch (...) {
                    failure = failure ? failure : error_in_flight();
                }
            }
        };
        const bool in_parts = able_.in_parts || place_.direct;
        const std::int64_t parts = in_parts ? place_.blocks : 1;
        for (std::int64_t part = 0; part < parts; ++part) {
            const std::int64_t slot = in_parts ? place_.slot(owner(writing_), part) : 0;
            const std::int64_t bytes = in_parts ? place_.bytes : place_.memory_bytes();
            if (stage_ != nullptr && writing_) {
                attempt([&] { memory_.to_host(stage_ + slot, slot, bytes); });
            }
            attempt([&] { in_parts ? file_->move_part(part * bytes, (part + 1) * bytes) : file_->move(); });
            if (stage_ != nullptr && !writing_) {
                attempt([&] { memory_.from_host(slot, stage_ + slot, bytes); });
            }
        }
        if (to_flush_) {
            attempt([&] { to_flush_->flush(); });
        }
        return failure;
    }

    /// @note Collective.
    void close() {
        mpi::together(comm_, [&] { file_->close(); });
        mpi::together(comm_, [&] {
            if (to_flush_) {
                to_flush_->close();
            }
        });
        file_.reset();
        to_flush_.reset();
    }

    /// What a reader must know of these seconds; empty: nothing.
    std::string note() const {
        if (storage_) {
            return storage_->note();
        }
        const std::string opens = point_.name == "per_rank" ? ", which opens the file too" : "";
        return able_.in_parts || place_.direct ? "" : point_.name + " moves all blocks of a rank in one call" + opens;
    }

private:
    void describe(const std::string& path) {
        region_ = {};
        region_.path = region_.name = path;
        region_.dtype = Dtype::uint8;
        region_.rows = place_.layout == FileLayout::interleaved ? place_.blocks : place_.ranks;
        region_.columns = (place_.layout == FileLayout::interleaved ? place_.ranks : place_.blocks) * place_.bytes;
        region_.file_bytes = place_.file_bytes();
        if (point_.name == "per_rank") {
            for (int rank = 0; rank < place_.ranks; ++rank) {
                region_.tiles.push_back({.path = place_.path_of(rank), .block = share(rank)});
            }
        } else if (place_.layout == FileLayout::per_rank) {
            region_.rows = 1;
        }
    }

    grid::Block share(int owner) const {
        if (place_.layout == FileLayout::interleaved) {
            return {{0, place_.blocks}, {owner * place_.bytes, (owner + 1) * place_.bytes}};
        }
        return {{owner, owner + 1}, {0, place_.blocks * place_.bytes}};
    }

    const mpi::Communicator& comm_;
    const Point& point_;
    const FilePlace& place_;
    const Ability& able_;
    BlockMemory& memory_;
    std::optional<device::Storage> storage_;  ///< for GPUDirect
    io::Strategy strategy_;                   ///< for all else
    std::byte* data_ = nullptr;
    std::byte* stage_ = nullptr;  ///< for memory that calls cannot reach
    Ledger ledger_;
    Context all_{comm_, ledger_, 1}, alone_{mpi::Communicator(MPI_COMM_SELF), ledger_, 1};
    bool writing_ = false;
    io::Region region_;
    std::optional<io::Transfer> transfer_;
    std::unique_ptr<io::OpenFile> file_;
    std::unique_ptr<io::PosixFile> to_flush_;
};

/// One point, once there is room for it.
class FileRun {
public:
    FileRun(Context& context, const Point& point, const Stop& stop, const Clock& clock, const FilePlace& place,
            BlockMemory& memory)
        : context_(context),
          comm_(context.comm),
          point_(point),
          stop_(stop),
          clock_(clock),
          place_(place),
          memory_(memory),
          files_(comm_, place) {}

    void measure(const FileHooks& hooks, Measurement& measured) {
        files_.make_new();
        if (measured.skipped = no_direct(); !measured.skipped.empty()) {
            return;
        }
        mover_.emplace(context_, point_, place_, memory_);
        write_round(0);
        measured.series.push_back(series("write_new", Act::write_new, 1));
        if (content()) {
            once(Act::read);
        }
        write_round(1);
        measured.series.push_back(series("write", Act::write, 3));
        hooks.before_reading();
        measured.series.push_back(series("read", Act::read, 3));
        if (!cached_.empty()) {  // what did not count need not have been warm
            cached_.erase(cached_.begin(), cached_.begin() + measured.series.back().warmup);
        }
        notes(measured);
        if (point_.pause > 0) {
            measured.series.push_back(rested());
        }
    }

private:
    enum class Act { write_new, write_rested, write, read };

    bool through_warm_cache() const { return point_.cache == "warm" && point_.name != "uncached"; }
    bool content() const { return point_.check == "content"; }

    std::string no_direct() const {
        std::string reason;
        if (comm_.rank() == 0 && (place_.direct || point_.name == "uncached")) {
            reason = files_.refuses_direct();
        }
        return mpi::of_root(comm_, reason.empty()) ? "" : "the file system does not support O_DIRECT: " + reason;
    }

    /// Makes the content of this rank's blocks; without a check, any will do, once.
    void write_round(int round) {
        if (round > 0 && !content()) {
            return;
        }
        round_ = round;
        mpi::together(comm_, [&] {
            for (std::int64_t block = 0; block < place_.blocks; ++block) {
                memory_.fill(place_.slot(comm_.rank(), block), place_.bytes, Pattern::of(comm_.rank(), block, round));
            }
        });
    }

    /// So that a read that does nothing is seen.
    void wipe() {
        const int owner = mover_->owner(false);
        mpi::together(comm_, [&] {
            for (std::int64_t block = 0; block < place_.blocks; ++block) {
                memory_.fill(place_.slot(owner, block), place_.bytes, Pattern::of(-1, block, round_));
            }
        });
    }

    void require_content() {
        const int owner = mover_->owner(false);
        mpi::together(comm_, [&] {
            for (std::int64_t block = 0; block < place_.blocks; ++block) {
                const std::int64_t wrong =
                    memory_.compare(place_.slot(owner, block), place_.bytes, Pattern::of(owner, block, round_));
                if (wrong >= 0) {
                    throw IoError(place_.path_of(owner) + ": block " + std::to_string(block) + " of rank " +
                                  std::to_string(owner) + " came back wrong from its byte " + std::to_string(wrong) +
                                  " on, written and read by " + point_.name);
                }
            }
        });
    }

    Timing once(Act act) {
        const bool writing = act != Act::read;
        if (act == Act::write_new || act == Act::write_rested) {
            files_.make_new();
            if (act == Act::write_rested) {
                std::this_thread::sleep_for(std::chrono::seconds(point_.pause));
            }
        } else if (!writing && point_.cache == "cold") {
            stayed_ = std::max(stayed_, files_.drop_from_cache());
        } else if (!writing && through_warm_cache()) {
            cached_.push_back(files_.cached());
        }
        if (!writing && content()) {
            wipe();
        }
        mover_->open(writing);
        comm_.barrier();
        const double begin = now();
        const std::optional<Error> failure = mover_->move();
        const double own = now();
        comm_.barrier();
        const double end = now();
        mpi::agree(comm_, failure);
        mover_->close();
        if (!writing && content()) {
            require_content();
        }
        return {end - begin - clock_.overhead, own - begin - clock_.overhead};
    }

    /// A third of the point's time.
    Series series(const std::string& name, Act act, int least) {
        Stop stop = stop_;
        stop.seconds /= 3;
        cached_.clear();
        return take_costly_samples(comm_, stop, name, least, [&] { return once(act); });
    }

    /// One of each launch: a pause is long.
    Series rested() {
        Stop stop;
        stop.least = stop.most = 1;
        stop.warmup = 0;
        return take_costly_samples(comm_, stop, "write_rested", 1, [&] { return once(Act::write_rested); });
    }

    void notes(Measurement& measured) const {
        if (const std::string note = mover_->note(); !note.empty()) {
            measured.notes.push_back(note);
        }
        if (point_.cache == "cold") {
            measured.notes.push_back(
                stayed_ > 0.01 ? "the page cache kept " + percent(stayed_) +
                                     " of a file that should have been dropped: these reads are not cold"
                               : "before a read at most " + percent(stayed_) + " of a file was in the page cache");
        }
        if (const auto least = std::min_element(cached_.begin(), cached_.end());
            least != cached_.end() && *least < 0.99) {
            measured.notes.push_back("before a read only " + percent(*least) +
                                     " of a file was in the page cache: these reads are not warm");
        }
        if (place_.direct && point_.name != "gpudirect") {
            if (const std::int64_t whole = place_.whole_pages(0); whole < place_.bytes) {
                measured.notes.push_back(std::to_string(place_.bytes - whole) + " of the " +
                                         std::to_string(place_.bytes) +
                                         " bytes of a block lie outside whole pages and went through the page cache");
            }
        }
        if (point_.name == "uncached" && point_.cache != "direct") {
            measured.notes.push_back("uncached bypasses the page cache: its reads are neither warm nor cold");
        }
    }

    Context& context_;
    const mpi::Communicator& comm_;
    const Point& point_;
    const Stop& stop_;
    const Clock& clock_;
    const FilePlace& place_;
    BlockMemory& memory_;
    SampleFiles files_;
    std::optional<Mover> mover_;
    int round_ = 0;
    double stayed_ = 0;           // of a file that was dropped, at most
    std::vector<double> cached_;  // of a file that was not, before each read
};

}  // namespace

FileHooks file_hooks() { return {free_on_disk, device::presence, device::make_memory}; }

Measurement file_with(const FileHooks& hooks, Context& context, const Point& point, const Stop& stop,
                      const Clock& clock) {
    Measurement measured;
    FilePlace place;
    std::unique_ptr<BlockMemory> memory;
    int number = 0;
    mpi::together(context.comm, [&] {
        require_sense(point);
        place = place_of(context.comm, point);
        measured.skipped = refuses(point.name, place.layout, point.cache);
    });
    if (measured.skipped.empty() && point.name == "gpudirect") {
        measured.skipped = refuses_gpudirect(context.comm, point.buffer, point.cache);
    }
    if (measured.skipped.empty() && place.direct && place.whole_pages(0) == 0) {
        measured.skipped = "blocks of " + std::to_string(point.bytes) + " bytes hold no whole page of " +
                           std::to_string(page) + ", the least that can bypass the page cache";
    }
    if (!measured.skipped.empty()) {
        return measured;
    }
    bool on_device = false;
    device::Presence found;
    mpi::together(context.comm, [&] {
        on_device = device::needs_driver(point.buffer);
        found = on_device ? hooks.devices() : found;
    });
    number = on_device ? device_of(context.comm, found.devices, point.gpus) : 0;
    mpi::together(context.comm, [&] { memory = hooks.make_memory(point.buffer, number); });
    measured.skipped = lacks_memory(context.comm, *memory, number, place.memory_bytes());
    if (measured.skipped.empty()) {
        // Nothing is allocated yet that could say whether blocks go through memory of the host.
        const bool staged = point.buffer == "device" && point.name != "gpudirect";
        measured.skipped = lacks_host_memory(context.comm, staged ? place.memory_bytes() : 0, "pinned");
    }
    if (measured.skipped.empty()) {
        measured.skipped = lacks_disk(context.comm, hooks, place);
    }
    if (!measured.skipped.empty()) {
        return measured;
    }
    mpi::together(context.comm, [&] { memory->allocate(place.memory_bytes()); });
    FileRun(context, point, stop, clock, place, *memory).measure(hooks, measured);
    if (on_device) {
        std::string device_name;
        mpi::together(context.comm, [&] { device_name = memory->device(); });
        measured.devices = gathered(context.comm, device_name);
        measured.simulated_devices = found.simulated;
    }
    return measured;
}

Measurement file(Context& context, const Point& point, const Stop& stop, const Clock& clock) {
    return file_with(file_hooks(), context, point, stop, clock);
}

}  // namespace tilewise::measure
