// Singular value decomposition of a matrix in a file, over any number of ranks: the operation that the worker and other
// programs call.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tilewise/base/outcome.hpp"
#include "tilewise/io/journal.hpp"
#include "tilewise/io/transfer.hpp"
#include "tilewise/kernel/factor/jacobi.hpp"
#include "tilewise/mpi/exchange/kinds.hpp"

namespace tilewise::svd {

enum class AlgorithmKind { jacobi, randomized, local, two_stage, serial, tall };
/// What the sweeps begin with: eigenvectors of AᵀA, where that is safe; a QR decomposition with pivots; the columns of
/// A as they are.
enum class StartKind { eigen, qr, none };
inline constexpr std::array<std::string_view, 3> start_names{"eigen", "qr", "none"};
inline constexpr std::array<std::string_view, 2> inner_names{"blocks", "rotations"};

struct Options {
    AlgorithmKind algorithm = AlgorithmKind::jacobi;
    mpi::ExchangeKind exchange = mpi::ExchangeKind::none;
    io::StrategyKind read = io::StrategyKind::positioned, write = io::StrategyKind::positioned;
    io::Hints hints;
    int blocks = 0;     ///< column blocks of the ring over all ranks, even; 0: two for each rank, six with `overlap`
    int qr_blocks = 0;  ///< the same where the start is `qr`, asked for or fallen back to; 0: as `blocks`
    grid::Remainder remainder = grid::Remainder::spread;
    StartKind start = StartKind::eigen;
    bool share_eigen = false;  ///< where the start is `eigen`: all ranks reduce AᵀA, not rank 0 alone
    kernel::Inner inner = kernel::Inner::blocks;  ///< how a pair of blocks is made orthogonal
    std::int64_t components = 0;                  ///< the largest so many; 0: all
    bool values_only = false;
    int max_sweeps = 30;
    /// The largest cosine between two columns that count as orthogonal, of `randomized` the largest ‖Aᵀu − σv‖ / σ; 0:
    /// its own.
    double tolerance = 0;
    double off_squares = 0;  ///< of `jacobi` and `serial`: sweeps also end once off(AᵀA) is below that; 0: never
    double energy = 0;       ///< above 0: the fewest components that have so much of ‖A‖_F², `components` at most
    int power = -1;  ///< of `randomized`: so many iterations, and what there is then; −1: as many as `tolerance` takes
    int oversample = 10;     ///< of `randomized`: columns of a block beyond the components
    std::int64_t basis = 0;  ///< of `randomized`: most columns of its space, three blocks at least; 0: as it likes
    std::uint64_t seed = 0;
    bool keep_small =
        /// of `local` and `two_stage`: jacobi takes over where rows or columns differ so much in scale that these would
        /// lose small values
        false;
    bool require_converged = true;  ///< else what there is after the last sweep is written, with a warning
    std::int64_t panel_bytes =
        0;  ///< of `randomized` and `tall`: most bytes of the matrix in a node's memory; 0: as they like
    Verify verify = Verify::off;
    int repeat = 1, warmup = 0;  ///< of the part in memory, each time from the input
    bool sync = false;
    /// Of `jacobi`, done once: what is swept, to go on from after a death; a file has a row for each of the n columns,
    /// and room in it for a column of A and one of V.
    io::CheckpointOptions checkpoints = {};
};

/// Part files that exist with their full size, all of the type that the result is rounded to.
struct Files {
    std::optional<io::Region> u;   ///< M×K
    io::Region s;                  ///< 1×K
    std::optional<io::Region> vt;  ///< K×N
    std::optional<io::Region> us;  ///< U·diag(s), M×K
};

/// What the decomposition has to say of itself; the same on all ranks, except where it says otherwise.
struct Diagnostics {
    std::string algorithm;  ///< that was taken in the end, where it is not the one that was asked for
    int sweeps = 0;
    std::vector<double> off_norm;  ///< the largest cosine that each sweep found
    std::vector<double>
        off_squares;  ///< off(AᵀA) in each: the sum of squares beside the diagonal, of each two columns as they met
    bool converged = true;
    std::int64_t components = 0, rank = 0;  ///< rank: how many σ > σ₁·max(M,N)·ε
    double sigma_max = 0, sigma_min = 0;
    std::optional<double> residual, orthogonality_u, orthogonality_v;
    std::string start, start_used,
        fallback;  ///< what preceded the sweeps; "eigen", "qr" or "none"; why it was not "eigen", had that been wanted
    struct Solves {
        std::int64_t small_angles = 0, eigen = 0, cholesky = 0, rotations = 0, skipped = 0;
    } inner_solves;
    std::int64_t narrowest = 0, widest = 0;            ///< columns of a block
    std::int64_t sweep_messages = 0, sweep_bytes = 0;  ///< of all ranks, one sweep
    std::int64_t reads = 0;                            ///< how many times the input was read, proof included
    std::optional<double> error_estimate;              ///< ‖A − U·Σ·Vᵀ‖_F / ‖A‖_F of fewer components than there are,
    double error_rounding = 0;  ///< and by how much it may be off; where that is as much, it is a bound
    // Of `randomized`:
    double norm = 0;                ///< ‖A‖_F
    std::int64_t within = 0;        ///< components whose residual is small enough
    double tolerance = 0;           ///< that ‖Aᵀu − σv‖ / σ was to reach
    std::vector<double> residuals;  ///< ‖Aᵀu − σv‖ of each component
    std::optional<double>
        sigma_error;  ///< the largest residual / σ of those that are not rounding of σ₁: by how much each σ may be off
};

struct Outcome : tilewise::Outcome {
    Diagnostics diagnostics;
    std::optional<io::Restored> restored;  ///< where there are checkpoints
};

/// A = U·diag(s)·Vᵀ (of complex numbers Vᴴ), or its K largest singular values with their vectors. Singular values
/// descend; of each pair of vectors the sign is such that the element of largest magnitude in the column of U is
/// positive (of several within 10⁻⁶ the first). `dtype` is float32 or float64, the type of the files, and of the
/// arithmetic of `randomized`; the others compute in float64. Of complex numbers it is complex64 or complex128, s is
/// real, and `randomized` is refused. Numbers that are not finite are refused with the position of the first. Where the
/// sweeps run out and `require_converged`, nothing is written, and the verification says so. Throws the same Error on
/// every rank, or aborts the job where ranks already wait. @note Collective over `context.comm`.
Outcome decompose(Context& context, const io::Region& a, const Files& files, Dtype dtype, const Options& options);

/// The ways to decompose, each in the file of its name, which says how it goes: `local.cpp` has `two_stage` too, and
/// `jacobi.cpp` `serial`. Collective, as decompose() is, which has refused before what every one of them would.
Outcome jacobi(Context& context, const io::Region& a, const Files& files, Dtype dtype, const Options& options);
Outcome randomized(Context& context, const io::Region& a, const Files& files, Dtype dtype, const Options& options);
Outcome local(Context& context, const io::Region& a, const Files& files, Dtype dtype, const Options& options);
Outcome tall(Context& context, const io::Region& a, const Files& files, Dtype dtype, const Options& options);

struct Algorithm {
    std::string_view name;
    Outcome (*run)(Context& context, const io::Region& a, const Files& files, Dtype dtype, const Options& options);
    bool takes_complex = true;
    bool is_alone = false;  ///< on one rank
    bool moves = false;     ///< blocks from rank to rank, where there are several; what is swept can be kept
    int most_blocks = 0;    ///< that columns are cut into; 0: as the matrix and the ranks allow
};

/// In the order of AlgorithmKind: one line here is one algorithm more.
inline constexpr std::array algorithms{
    Algorithm{.name = "jacobi", .run = jacobi, .moves = true},
    Algorithm{.name = "randomized", .run = randomized, .takes_complex = false},
    Algorithm{.name = "local", .run = local, .is_alone = true},
    Algorithm{.name = "two_stage", .run = local, .takes_complex = false},
    Algorithm{.name = "serial", .run = jacobi, .is_alone = true, .most_blocks = 2},
    Algorithm{.name = "tall", .run = tall},
};

inline const Algorithm& algorithm_of(const Options& options) {
    return algorithms.at(static_cast<std::size_t>(options.algorithm));
}

/// That of singular values, whose vectors are of type `dtype`.
constexpr Dtype real_type(Dtype dtype) {
    return dtype == Dtype::complex64 ? Dtype::float32 : dtype == Dtype::complex128 ? Dtype::float64 : dtype;
}

/// Throws UsageError for an unknown name, listing the known ones.
AlgorithmKind algorithm_named(std::string_view name);

}  // namespace tilewise::svd
