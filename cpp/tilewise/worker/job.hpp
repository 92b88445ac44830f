// The job as it comes in over the seam: the same fields as in docs/reference/seam.md, and nothing that the worker may
// decide.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tilewise/convert/convert.hpp"
#include "tilewise/io/region.hpp"
#include "tilewise/io/site.hpp"
#include "tilewise/measure/point.hpp"
#include "tilewise/multiply/multiply.hpp"
#include "tilewise/norm/norm.hpp"
#include "tilewise/stencil/stencil.hpp"
#include "tilewise/svd/svd.hpp"
#include "tilewise/transpose/transpose.hpp"

namespace tilewise::worker {

inline constexpr int protocol = 15;

/// Bytes of a job that the front sends ahead of what it hears to have been read: half of what a pipe holds.
inline constexpr std::size_t job_window = 32768;

struct TileFields {
    std::string path;
    std::int64_t offset = 0;
    std::array<std::int64_t, 2> rows{}, columns{}, strides{};
};

struct FilterFields {
    std::string name, byte_order;
    std::int64_t item = 1;
};

struct ChunksFields {
    std::array<std::int64_t, 2> shape{}, steps{};
    std::int64_t start = 0, numbers = 0;
    bool clipped = false;
    std::vector<FilterFields> filters;
    std::vector<std::string> paths;
    std::vector<std::int64_t> offsets, bytes;
    std::vector<std::uint32_t> skipped;
    std::string fill;  ///< in hexadecimal digits
};

struct RegionFields {
    std::string path, name;
    std::int64_t offset = 0, rows = 0, columns = 0;
    std::string dtype, byte_order, order, encoding, separator;
    std::int64_t line_numbers = 0;
    bool pairs = false;
    std::string decimal;
    std::vector<std::string> missing;
    std::int64_t text_end = -1;
    bool hash_comments = true;
    std::vector<TileFields> tiles;
    std::string fill;
    std::optional<ChunksFields> chunks;
    std::int64_t file_bytes = -1;
    bool transposed = false;
    std::string generator;
    std::uint64_t seed = 0;
    std::vector<std::int64_t> steps;  ///< bytes from a slice of a stack to the next, along each of its axes
};

struct VariantFields {
    std::string algorithm, exchange;
    std::string between_nodes;  ///< the exchange where ranks are on several nodes; empty: as said
    std::string read, write;
    std::array<int, 2> grid{1, 1};
    int copies = 1, ranks = 1, threads = 1;
    std::string kernel, remainder;
    std::string root_write;  ///< of `gather`; empty elsewhere
    /// Of a transposition in memory, rows and columns; 0: the kernel's own. Of a stencil, of what is swept at a time;
    /// 0: all.
    std::array<std::int64_t, 2> tile{};
    bool streaming = false;     ///< whether it writes past the caches
    std::string decomposition;  ///< of a stencil: what the user calls its grid
    int depth = 0;              ///< of a stencil: sweeps of a pass, and from one exchange to the next
    std::string halo;           ///< of a stencil: how cells leave the field
    bool reorder = false;       ///< of a stencil: whether MPI says which rank has which block
    int blocks = 0;             ///< of a decomposition: column blocks of the ring over all ranks
    std::string start, inner;   ///< of a decomposition: how it starts, and how a pair of blocks is solved
};

struct StencilFields {
    std::int64_t steps = 0;
    int radius = 1;
    std::vector<double> weights;
    std::string boundary;
    std::int64_t planes = 1, snapshot_every = 0;
    std::vector<RegionFields> snapshots, states;
    double until_change = 0;
    std::int64_t check_every = 16;
};

struct SvdFields {
    std::int64_t components = 0;
    bool values_only = false;
    int max_sweeps = 30;
    double tolerance = 0, off_squares = 0, energy = 0;
    int power = -1, oversample = 10;
    std::int64_t basis = 0;
    std::uint64_t seed = 0;
    bool keep_small = false, require_converged = true;
    std::int64_t panel_bytes = 0;
    int qr_blocks = 0;
    bool share_eigen = false;
    bool scaled = false;
    std::optional<RegionFields> u, s, vt, us;
};

/// An operation that is done for every slice; regions with `steps` are those of the first one.
struct StackFields {
    std::vector<std::int64_t> extents;
    bool apart = false;  ///< each rank does slices of its own; the variant is that of one rank
};

struct ConvertFields {
    std::int64_t row = 0, column = 0;  ///< of the input, where the output begins
    std::optional<double> scale;
};

/// A rectangle that an earlier start wrote down: rows and columns [begin, end) as stored, checksum in hexadecimal.
struct StandingFields {
    int start = 0;
    std::array<std::int64_t, 4> block{};
    std::string sum;
};

/// A state that an earlier start has left whole; `facts` are the bits of numbers, in hexadecimal.
struct SavedFields {
    int slot = 0;
    std::int64_t version = 0;
    std::vector<std::string> facts;
    std::vector<StandingFields> pieces;
};

struct JournalFields {
    std::string folder;
    int start = 0;
    std::vector<StandingFields> standing;
    double every = 0, ends = 0;
    std::vector<RegionFields> slots;
    std::vector<SavedFields> saved;
};

struct MeasureFields {
    measure::Stop stop;
    std::vector<int> cpus;  ///< the core of each rank, taken in turn; empty: as `bind` and `place` say
    std::vector<measure::Point> points;
};

struct Job {
    int protocol = 0;
    std::uint32_t constants = 0;  ///< the digest of those that the plan went by; 0: it needed none
    std::string id, command;
    std::vector<RegionFields> inputs;
    std::optional<RegionFields> output;
    VariantFields variant;
    std::optional<StencilFields> stencil;
    std::optional<SvdFields> svd;
    std::optional<StackFields> stack;
    std::optional<ConvertFields> convert;
    std::optional<MeasureFields> measure;
    std::optional<JournalFields> journal;
    std::string dtype, verify, overflow;
    int repeat = 1, warmup = 0;
    bool symmetric = false, sync = false, bind = false, read_back = false;
    bool survive = false;  ///< where the library can, ranks go on without one that has died
    bool queue = true;     ///< of tiles that ranks do on their own: whoever is idle takes the next
    std::int64_t band_bytes = 0;
    std::array<std::int64_t, 3> stage{};  ///< of a product larger than memory: m, n, k of what is there at a time
    double tolerance = 0;
    std::string place;
    std::map<std::string, std::string> hints;
    std::string trace;
    std::optional<io::Site> site;  ///< what other hosts must see as the front does; nothing where there are none
    bool progress = false;
    std::string fault;
};

/// Throws UsageError for text that is not a job of this protocol, or that was planned by other constants.
Job parse_job(const std::string& text);

io::Region region_of(const RegionFields& fields);
/// Throws UsageError where they do not fit `region`, or each other.
io::Chunks chunks_of(const ChunksFields& fields, const io::Region& region);

/// The bytes that `text` is in hexadecimal digits, two each. Throws UsageError for anything else.
std::string bytes_of_hex(const std::string& text);
struct OneToOne {
    io::Region from, to;
};
/// Of a command that makes one file out of one; throws UsageError for others.
OneToOne one_to_one(const Job& job);
/// Where there is none, its folder is empty. Throws UsageError for checksums that are none.
io::JournalOptions journal_of(const Job& job);
/// Where there are none, their folder is empty. Throws UsageError as that does.
io::CheckpointOptions checkpoints_of(const Job& job);
multiply::Options options_of(const Job& job);
convert::Options convert_options_of(const Job& job);
norm::Options norm_options_of(const Job& job);
transpose::Options transpose_options_of(const Job& job);
stencil::Options stencil_options_of(const Job& job);
svd::Options svd_options_of(const Job& job);
svd::Files svd_files_of(const Job& job);
Dtype dtype_of(const std::string& name);

/// As JSON: field names of every struct of the seam, the tables of variants, and facts about this build, for the
/// front's test.
std::string describe();

}  // namespace tilewise::worker
