// The job as it comes in over the seam: the fields of docs/reference/seam.md, read into what operations take, and
// nothing that the worker may decide.
// Design: docs/design/front.md
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tilewise/convert/convert.hpp"
#include "tilewise/io/journal.hpp"
#include "tilewise/io/site.hpp"
#include "tilewise/measure/point.hpp"
#include "tilewise/multiply/multiply.hpp"
#include "tilewise/norm/norm.hpp"
#include "tilewise/stencil/stencil.hpp"
#include "tilewise/svd/svd.hpp"
#include "tilewise/transpose/transpose.hpp"

namespace tilewise::worker {

inline constexpr int protocol = 16;

/// Bytes of a job that the front sends ahead of what it hears to have been read: half of what a pipe holds.
inline constexpr std::size_t job_window = 32768;

/// An operation that is done for every slice; regions with `steps` are those of the first one.
struct Stack {
    std::vector<std::int64_t> extents;
    bool apart = false;  ///< each rank does slices of its own; the variant is that of one rank
};

/// What the worker itself has to know of a job. What only its operation takes is in `text`, for options_of.
struct Job {
    std::string id, command;
    std::vector<io::Region> inputs;
    std::optional<io::Region> output;
    std::optional<svd::Files> parts;  ///< of a decomposition, instead of an output
    Dtype dtype{};
    int ranks = 1, threads = 1;
    grid::Grid grid;
    std::string exchange = "none";
    std::string between_nodes;  ///< the exchange where ranks are on several nodes; empty: as said
    std::optional<Stack> stack;
    io::JournalOptions journal;
    io::CheckpointOptions checkpoints;
    bool bind = false;
    bool survive = false;  ///< where the library can, ranks go on without one that has died
    std::string place = "core", trace;
    std::optional<io::Site> site;  ///< what other hosts must see as the front does; nothing where there are none
    bool progress = false;
    std::string fault;
    std::shared_ptr<const nlohmann::json> text;
};

/// Of a stencil, with what the frame around it does.
struct StencilOptions : stencil::Options {
    std::vector<io::Region> snapshots;
    bool reorder = false;  ///< whether MPI says which rank has which block
};

struct MeasureOptions {
    measure::Stop stop;
    std::vector<int> cpus;  ///< the core of each rank, taken in turn; empty: as `bind` and `place` say
    std::vector<measure::Point> points;
};

/// Throws UsageError for text that is not a job of this protocol, or that was planned by other constants.
Job parse_job(const std::string& text);

/// What the job says to its operation: the `Options` of multiply, transpose, svd and norm, and those above. Throws
/// UsageError for names that are none, and where a field is missing or of another type.
template <class Options> Options options_of(const Job& job);

struct OneToOne {
    io::Region from, to;
};
/// Of a command that makes one file out of one, which is `transposed`; throws UsageError for others.
OneToOne one_to_one(const Job& job, bool transposed = false);

/// In the order of kernel::Boundary::Kind, but for the last.
inline constexpr std::array<std::string_view, 7> boundary_names{"fixed",   "periodic", "reflect", "mirror",
                                                                "nearest", "constant", "zero"};

/// The fields of each kind of object in a job, as they are read.
using Asked = std::map<std::string_view, std::set<std::string_view>>;
Asked fields_of_jobs();

}  // namespace tilewise::worker
