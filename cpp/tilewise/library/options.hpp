// Options and results of the four operations.
#pragma once

#include <optional>
#include <vector>

#include "tilewise/base/outcome.hpp"
#include "tilewise/library/matrix.hpp"
#include "tilewise/mpi/exchange/kinds.hpp"

namespace tilewise::inline api {

/// How numbers travel between ranks. Each operation accepts some of them, and a refusal lists these; `none`
/// leaves the choice to it.
using Exchange = mpi::ExchangeKind;

/// The work of this rank.
struct Report {
    double input = 0, compute = 0, exchange = 0, output = 0, verify = 0, total = 0;  ///< seconds
    std::int64_t exchanged = 0, messages = 0;  ///< bytes and messages received while computing
    std::optional<Verification> verification;
};

enum class MultiplyAlgorithm { automatic, local, cannon, summa, replicated };

struct MultiplyOptions {
    MultiplyAlgorithm algorithm = MultiplyAlgorithm::automatic;  ///< summa, on one rank local
    Exchange exchange = Exchange::none;                          ///< overlap
    ProcessGrid grid = {};  ///< that computes, whatever the distributions are; none: as square as can be
    int copies = 1;         ///< of the grid, for `replicated`
    int threads = 1;        ///< on each rank
    bool wrap = false;      ///< integers that could overflow wrap; else they are refused with the bound
    bool verify = false;  ///< by Freivalds' check; a product that fails it is thrown as an Error of kind `verification`
};

struct TransposeOptions {
    Exchange exchange = Exchange::none;  ///< nonblocking
    ProcessGrid grid = {};
    int threads = 1;
    bool verify = false;  ///< by fingerprints of both, read again
};

/// What lies beyond the matrix: see docs/reference/stencil.md.
enum class Boundary { zero, fixed, periodic, reflect, mirror, nearest, constant };

struct StencilOptions {
    std::vector<double> weights = {};  ///< (2r+1)² row by row, r from 1 to 4: out[i,j] = Σ w[a,b]·in[i+a−r,j+b−r]
    std::int64_t steps = 1;
    Boundary boundary = Boundary::zero;
    double outside = 0;                  ///< of `constant`: the value outside
    Exchange exchange = Exchange::none;  ///< overlap
    ProcessGrid grid = {};
    int depth = 0;  ///< sweeps from one exchange to the next; 0: what suits
    int threads = 1;
};

enum class SvdAlgorithm { automatic, jacobi, randomized, local };

struct SvdOptions {
    SvdAlgorithm algorithm = SvdAlgorithm::automatic;  ///< jacobi
    Exchange exchange = Exchange::none;                ///< nonblocking
    std::int64_t components = 0;                       ///< the number of largest values; 0: all
    double tolerance = 0;                              ///< 0: the algorithm's own
    int max_sweeps = 30;
    std::uint64_t seed = 0;
    int threads = 1;
};

struct Svd : Report {
    std::vector<double> values;  ///< descending, the same on every rank
    int sweeps = 0;
    std::int64_t rank = 0;  ///< how many values are more than rounding
};

}  // namespace tilewise::inline api
