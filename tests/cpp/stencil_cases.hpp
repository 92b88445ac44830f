// What the tests of stencil sweeps share: cases over files that rank 0 makes, and the plain sweeps of one rank that
// they are compared with.
#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "io_cases.hpp"
#include "tilewise/stencil/evolution.hpp"
#include "tilewise/stencil/stencil.hpp"

namespace tilewise::test {

using kernel::Boundary;
using stencil::Options;
using stencil::Outcome;
using Bytes = std::vector<char>;

inline const kernel::Weights star{1, {0, 0.1, 0, 0.1, 0.6, 0.1, 0, 0.1, 0}};
inline const kernel::Weights lopsided{1, {0.01, 0.2, 0.03, 0.14, 0.3, 0.05, 0.16, 0.07, 0.04}};

inline kernel::Weights wide() {
    kernel::Weights weights{2, {}};
    for (int i = 0; i < 25; ++i) {
        weights.values.push_back(0.01 + 0.003 * ((i * 7) % 25));
    }
    return weights;
}

inline constexpr std::array<Boundary, 7> boundaries{Boundary::zero,
                                                    Boundary::fixed,
                                                    Boundary::periodic,
                                                    Boundary::reflect,
                                                    Boundary::mirror,
                                                    Boundary::nearest,
                                                    Boundary{Boundary::constant, 0.75}};

struct Case {
    std::int64_t rows = 37, columns = 43;
    Dtype dtype = Dtype::float32;
    Dtype from_dtype = Dtype::float32, to_dtype = Dtype::float32;
    bool from_by_columns = false, to_by_columns = false;
    Options options{};
    std::size_t snapshots = 0;
    std::size_t states = 0;  ///< files between passes
};

inline io::Region made(const Case& c) {
    io::Region region;
    region.name = "made";
    region.rows = c.rows;
    region.columns = c.columns;
    region.dtype = c.from_dtype;
    region.generator = is_integer(c.from_dtype) ? "random" : "normal";
    region.column_major = c.from_by_columns;
    region.seed = 5;
    return region;
}

struct Result {
    Bytes bytes;
    std::vector<Bytes> snapshots;
    stencil::Outcome outcome;
    Counters counted;
};

inline Bytes contents(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

/// Runs a case over files that rank 0 makes; every rank gets what stands in them.
inline Result swept(const mpi::Communicator& comm, const Case& c, const io::Region& from, int threads = 1) {
    std::vector<io::Region> to;
    std::vector<std::unique_ptr<Scratch>> files;
    std::vector<io::Region> states;
    for (std::size_t i = 0; i <= c.snapshots + c.states; ++i) {
        const bool is_state = i > c.snapshots;
        files.push_back(
            std::make_unique<Scratch>(comm, ".stencil" + std::to_string(comm.size()) + "." + std::to_string(i)));
        io::Region region = test::region(files.back()->path, c.rows, c.columns, 0);
        region.dtype = is_state ? c.dtype : c.to_dtype;
        region.column_major = is_state ? c.from_by_columns : c.to_by_columns;
        region.rows = is_state ? c.rows / c.options.planes : c.rows;
        region.file_bytes = region.bytes();
        if (comm.rank() == 0) {
            std::ofstream(region.path, std::ios::binary) << std::string(static_cast<std::size_t>(region.bytes()), '?');
        }
        (is_state ? states : to).push_back(region);
    }
    comm.barrier();
    Ledger ledger;
    Context context{comm, ledger, threads};
    ledger.start(Phase::input);
    Result result;
    const io::Region last = to.front();
    to.erase(to.begin());
    Options options = c.options;
    options.states = states;
    result.outcome = stencil::stencil(context, from, last, to, c.dtype, options);
    result.outcome.fields.reset();
    ledger.stop();
    result.counted = ledger.count();
    comm.barrier();
    result.bytes = contents(last.path);
    for (const io::Region& region : to) {
        result.snapshots.push_back(contents(region.path));
    }
    return result;
}

inline Result swept(const mpi::Communicator& comm, const Case& c, int threads = 1) {
    return swept(comm, c, made(c), threads);
}

/// The same on each rank alone, with plain sweeps one by one.
inline Result expected(Case c, const io::Region& from) {
    static const mpi::Communicator self(MPI_COMM_SELF);
    c.options.grid = {1, 1};
    c.options.exchange = mpi::ExchangeKind::none;
    c.options.halo = stencil::HaloForm::packed;
    c.options.depth = 1;
    c.options.plain = true;
    c.options.verify = Verify::off;
    c.options.repeat = 1;
    c.options.warmup = 0;
    c.options.tile_rows = c.options.tile_columns = 0;
    c.states = 0;
    return swept(self, c, from);
}

inline Result expected(const Case& c) { return expected(c, made(c)); }

inline std::vector<grid::Grid> grids(int ranks) {
    std::vector<grid::Grid> found;
    for (int rows = 1; rows <= ranks; ++rows) {
        if (ranks % rows == 0) {
            found.push_back({rows, ranks / rows});
        }
    }
    return found;
}

inline bool go_together(std::string_view exchange, std::string_view halo, int ranks) {
    try {
        stencil::check_exchange(stencil::exchange_named(exchange), stencil::halo_named(halo), ranks);
        return true;
    } catch (const UsageError&) {
        return false;
    }
}

inline double at(const Bytes& bytes, std::int64_t index) {
    float value = 0;
    std::memcpy(&value, bytes.data() + index * 4, 4);
    return static_cast<double>(value);
}

}  // namespace tilewise::test
