// Writes and reads as report 4 did, sample by sample, and says of each what happened outside the timed part.
#include "tilewise/measure/file.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <thread>

#include "tilewise/base/names.hpp"
#include "tilewise/device/block_memory.hpp"
#include "tilewise/measure/file_place.hpp"
#include "tilewise/measure/file_sample.hpp"
#include "tilewise/measure/file_way.hpp"
#include "tilewise/measure/memory_budget.hpp"
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
    place.direct = point.cache == "direct" && is_blockwise(point.name);
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

/// One point, once there is room for it.
class FileRun {
public:
    FileRun(Context& context, const Point& point, const Stop& stop, const Clock& clock, const FilePlace& place,
            BlockMemory& memory)
        : comm_(context.comm),
          point_(point),
          stop_(stop),
          clock_(clock),
          place_(place),
          memory_(memory),
          files_(comm_, place),
          fields_{context, place, memory, point.name, point.check != "none", point.shift % comm_.size()} {}

    void measure(const FileHooks& hooks, Measurement& measured) {
        files_.make_new();
        if (measured.skipped = no_direct(); !measured.skipped.empty()) {
            return;
        }
        mpi::together(comm_, [&] { way_ = make_way(fields_); });
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
        const int owner = fields_.owner(false);
        mpi::together(comm_, [&] {
            for (std::int64_t block = 0; block < place_.blocks; ++block) {
                memory_.fill(place_.slot(owner, block), place_.bytes, Pattern::of(-1, block, round_));
            }
        });
    }

    void require_content() {
        const int owner = fields_.owner(false);
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
        way_->open(writing);
        comm_.barrier();
        const double begin = now();
        const std::optional<Error> failure = way_->move(writing, writing && point_.sync);
        const double own = now();
        comm_.barrier();
        const double end = now();
        mpi::agree(comm_, failure);
        way_->close();
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
        if (const std::string note = way_->note(); !note.empty()) {
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

    const mpi::Communicator& comm_;
    const Point& point_;
    const Stop& stop_;
    const Clock& clock_;
    const FilePlace& place_;
    BlockMemory& memory_;
    SampleFiles files_;
    WayFields fields_;
    std::unique_ptr<FileWay> way_;
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
        const bool staged = point.buffer == "device";  // nothing is allocated yet that could say so
        measured.skipped = lacks_host_memory(context.comm, staged ? stage_bytes(point.name, place) : 0, "pinned");
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
