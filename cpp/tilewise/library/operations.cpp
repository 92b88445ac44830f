// Each call: a session over the caller's communicator, looks at what was given, the operation with options that work
// in memory, and names for new files.
#include <algorithm>
#include <cmath>

#include "tilewise/kernel/factor/lapack.hpp"
#include "tilewise/library/matrix_state.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/multiply/multiply.hpp"
#include "tilewise/stencil/stencil.hpp"
#include "tilewise/svd/svd.hpp"
#include "tilewise/transpose/transpose.hpp"
// Behind the folders: clang takes a function by the name of a namespace, but no namespace by that of a function.
// clang-format off
#include "tilewise/library/operations.hpp"
// clang-format on

namespace tilewise::inline api {
namespace {

using library::name_files;
using library::region_of;
using library::require_sound;

/// Runs f(context) over a duplicate of `comm`, keeps the books, and leaves the BLAS with the threads that it had.
template <class F> auto in_session(MPI_Comm comm, int threads, const F& f) {
    decltype(f(std::declval<Context&>())) result;
    const kernel::BlasThreads before(1);
    Ledger ledger;
    Context context{mpi::Communicator(comm), ledger, std::max(1, threads)};
    ledger.start(Phase::input);
    result = f(context);
    ledger.stop();
    Report& report = result;
    report.input = ledger.seconds(Phase::input);
    report.compute = ledger.seconds(Phase::compute);
    report.exchange = ledger.seconds(Phase::exchange);
    report.output = ledger.seconds(Phase::output);
    report.verify = ledger.seconds(Phase::verify);
    report.total = ledger.total();
    report.exchanged = ledger.count().exchanged;
    report.messages = ledger.count().messages;
    return result;
}

/// `none` leaves the choice to the operation.
Exchange chosen(Exchange exchange, Exchange automatic) { return exchange == Exchange::none ? automatic : exchange; }

/// As square as can be, with more columns than rows where it cannot.
grid::Grid grid_for(const ProcessGrid& asked, int ranks) {
    if (asked.rows > 0 || asked.columns > 0) {
        return {asked.rows, asked.columns};
    }
    int rows = static_cast<int>(std::sqrt(static_cast<double>(ranks)));
    while (ranks % rows != 0) {
        --rows;
    }
    return {rows, ranks / rows};
}

/// Throws where an operation said, on all ranks alike, that its result is not one.
void require_passed(const Context& context, const std::optional<Verification>& verification, const std::string& what) {
    if (verification && !verification->passed) {
        mpi::throw_agreed(context.comm,
                          VerificationError(what + " failed its check (" + verification->method + "): the error is " +
                                            std::to_string(verification->error) + ", at most " +
                                            std::to_string(verification->tolerance) + " was expected"));
    }
}

/// Whether numbers of one type can be taken into a computation in the other.
void require_room(const io::Region& from, Dtype to) {
    if (size_of(from.dtype) > size_of(to) || (is_complex(from.dtype) && !is_complex(to)) ||
        (is_integer(to) && !is_integer(from.dtype))) {
        throw UsageError(from.name + " is " + std::string(name_of(from.dtype)) + ", which " + std::string(name_of(to)) +
                         " cannot hold");
    }
}

}  // namespace

Report multiply(MPI_Comm comm, const Matrix& a, const Matrix& b, const MutableMatrix& c,
                const MultiplyOptions& options) {
    return in_session(comm, options.threads, [&](Context& context) {
        require_sound(context, {&a, &b, &c});
        const io::Region from_a = region_of(a, "A"), from_b = region_of(b, "B"), to = region_of(c, "C");
        const int ranks = context.comm.size();
        mpi::together(context.comm, [&] {
            require_room(from_a, to.dtype);
            require_room(from_b, to.dtype);
            with_compute_type(to.dtype, [](auto) {});
            if (to.rows != from_a.logical_rows() || to.columns != from_b.logical_columns()) {
                throw UsageError(to.name + " is " + std::to_string(to.rows) + "x" + std::to_string(to.columns) +
                                 ", and the product is " + std::to_string(from_a.logical_rows()) + "x" +
                                 std::to_string(from_b.logical_columns()));
            }
        });
        using Kind = multiply::AlgorithmKind;
        const std::array kinds{ranks == 1 ? Kind::local : Kind::summa, Kind::local, Kind::cannon, Kind::summa,
                               Kind::replicated};
        multiply::Options core;
        core.algorithm = kinds.at(static_cast<std::size_t>(options.algorithm));
        core.exchange = chosen(options.exchange, core.algorithm == Kind::local ? Exchange::none : Exchange::overlap);
        core.grid = grid_for(options.grid, std::max(1, ranks / std::max(1, options.copies)));
        core.copies = options.copies;
        core.overflow = options.wrap ? multiply::Overflow::wrap : multiply::Overflow::refuse;
        core.verify = options.verify ? Verify::fast : Verify::off;
        Report report;
        report.verification = multiply::multiply(context, from_a, from_b, &to, to.dtype, core).verification;
        require_passed(context, report.verification, "the product");
        name_files(context, {&c});
        return report;
    });
}

Report transpose(MPI_Comm comm, const Matrix& a, const MutableMatrix& b, const TransposeOptions& options) {
    return in_session(comm, options.threads, [&](Context& context) {
        require_sound(context, {&a, &b});
        const io::Region from = region_of(a, "A"), to = region_of(b, "B");
        transpose::Options core;
        core.algorithm = transpose::AlgorithmKind::swap;  // the others speak of files
        core.exchange = chosen(options.exchange, Exchange::nonblocking);
        core.grid = grid_for(options.grid, context.comm.size());
        core.verify = options.verify ? Verify::fast : Verify::off;
        Report report;
        report.verification = transpose::transpose(context, from, to, core).verification;
        require_passed(context, report.verification, "the transpose");
        name_files(context, {&b});
        return report;
    });
}

Report stencil(MPI_Comm comm, const Matrix& a, const MutableMatrix& b, const StencilOptions& options) {
    return in_session(comm, options.threads, [&](Context& context) {
        require_sound(context, {&a, &b});
        const io::Region from = region_of(a, "A"), to = region_of(b, "B");
        const auto is_narrow = [](Dtype dtype) { return dtype == Dtype::float16 || dtype == Dtype::float32; };
        const auto side = static_cast<int>(std::lround(std::sqrt(static_cast<double>(options.weights.size()))));
        const std::array<kernel::Boundary, 7> boundaries{kernel::Boundary::zero,
                                                         kernel::Boundary::fixed,
                                                         kernel::Boundary::periodic,
                                                         kernel::Boundary::reflect,
                                                         kernel::Boundary::mirror,
                                                         kernel::Boundary::nearest,
                                                         kernel::Boundary(kernel::Boundary::constant, options.outside)};
        stencil::Options core;
        core.weights = {(side - 1) / 2, options.weights};
        core.steps = options.steps;
        core.boundary = boundaries.at(static_cast<std::size_t>(options.boundary));
        core.exchange = chosen(options.exchange, context.comm.size() == 1 ? Exchange::none : Exchange::overlap);
        core.depth = options.depth;
        core.grid = grid_for(options.grid, context.comm.size());
        stencil::stencil(context, from, to, {},
                         is_narrow(from.dtype) && is_narrow(to.dtype) ? Dtype::float32 : Dtype::float64, core);
        name_files(context, {&b});
        return Report{};
    });
}

Svd svd(MPI_Comm comm, const Matrix& a, const std::optional<MutableMatrix>& u, const std::optional<MutableMatrix>& vt,
        const SvdOptions& options) {
    return in_session(comm, options.threads, [&](Context& context) {
        std::vector<const Matrix*> all{&a};
        std::vector<const MutableMatrix*> results;
        for (const std::optional<MutableMatrix>* result : {&u, &vt}) {
            if (*result) {
                all.push_back(&**result);
                results.push_back(&**result);
            }
        }
        require_sound(context, all);
        const io::Region from = region_of(a, "A");
        const int ranks = context.comm.size();
        const std::int64_t most = std::min(from.logical_rows(), from.logical_columns()),
                           count = options.components > 0 ? options.components : most;
        const auto rows_first = [](io::Region& region) {  // in memory strides alone know of the order of storage
            region.column_major = region.column_major && region.memory == nullptr;
        };
        svd::Files files;
        if (u) {
            files.u = region_of(*u, "U");
            rows_first(*files.u);
        }
        if (vt) {
            files.vt = region_of(*vt, "Vt");
            rows_first(*files.vt);
        }
        const Dtype dtype = u                                                              ? files.u->dtype
                            : vt                                                           ? files.vt->dtype
                            : is_complex(from.dtype)                                       ? from.dtype
                            : from.dtype == Dtype::float16 || from.dtype == Dtype::float32 ? Dtype::float32
                                                                                           : Dtype::float64;
        Svd result;
        std::vector<float> narrow;
        io::InMemory values{ranks,
                            [=](int rank) {
                                return rank == 0 ? std::vector<grid::Share>{grid::Block{{0, 1}, {0, count}}}
                                                 : std::vector<grid::Share>{};
                            },
                            {}};
        mpi::together(context.comm, [&] {
            result.values.resize(static_cast<std::size_t>(std::max<std::int64_t>(0, count)));
            narrow.resize(svd::real_type(dtype) == Dtype::float32 ? result.values.size() : 0);
        });
        if (context.comm.rank() == 0) {
            void* data = narrow.empty() ? static_cast<void*>(result.values.data()) : narrow.data();
            values.mine.push_back({static_cast<std::byte*>(data), count, 1});
        }
        files.s.name = std::string("s");
        files.s.rows = 1;
        files.s.columns = count;
        files.s.dtype = svd::real_type(dtype);
        files.s.memory = &values;
        using Kind = svd::AlgorithmKind;
        constexpr std::array kinds{Kind::jacobi, Kind::jacobi, Kind::randomized, Kind::local};
        svd::Options core;
        core.algorithm = kinds.at(static_cast<std::size_t>(options.algorithm));
        const bool travels = core.algorithm == Kind::jacobi && ranks > 1;
        core.exchange = chosen(options.exchange, travels ? Exchange::nonblocking : Exchange::none);
        core.components = options.components;
        core.values_only = !u && !vt;
        core.tolerance = options.tolerance;
        core.max_sweeps = options.max_sweeps;
        core.seed = options.seed;
        const svd::Outcome outcome = svd::decompose(context, from, files, dtype, core);
        result.verification = outcome.verification;
        require_passed(context, result.verification, "the decomposition");
        result.sweeps = outcome.diagnostics.sweeps;
        result.rank = outcome.diagnostics.rank;
        std::copy(narrow.begin(), narrow.end(), result.values.begin());
        mpi::check(MPI_Bcast(result.values.data(), static_cast<int>(count), MPI_DOUBLE, 0, context.comm.get()),
                   "MPI_Bcast");
        name_files(context, results);
        return result;
    });
}

}  // namespace tilewise::inline api
