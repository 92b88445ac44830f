// Strategy `collective`: MPI-IO with a file view for each rank, and one read_all or write_all.
//
//        file  [header][ . . | # # ]      the view begins after the header, and shows a rank nothing but its own block
//                      [ . . | # # ]      as if it were contiguous
#include <algorithm>
#include <limits>

#include "tilewise/io/strategy.hpp"
#include "tilewise/mpi/datatype.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::io {
namespace {

using mpi::check;

class Collective final : public Strategy {
public:
    explicit Collective(Hints hints) : hints_(std::move(hints)) {}

    void read(Context& context, const Transfer& transfer) const override {
        const Timed timed(context.ledger, context.ledger.phase(), Step::file, "read_all " + transfer.region.name);
        const std::int64_t bytes = run(context, transfer, MPI_MODE_RDONLY, "MPI_File_read_all", MPI_File_read_all);
        context.ledger.count().read += bytes;
        context.ledger.count().useful += bytes;
    }

    void write(Context& context, const Transfer& transfer) const override {
        const Timed timed(context.ledger, context.ledger.phase(), Step::file, "write_all " + transfer.region.name);
        context.ledger.count().written +=
            run(context, transfer, MPI_MODE_RDWR, "MPI_File_write_all",
                [](MPI_File file, void* data, int count, MPI_Datatype type, MPI_Status* status) {
                    return MPI_File_write_all(file, data, count, type, status);
                });
    }

private:
    template <class Call>
    std::int64_t run(Context& context, const Transfer& transfer, int mode, const char* name, Call call) const {
        const MPI_Datatype item = mpi::type_of(transfer.region.dtype);
        const grid::Block block = transfer.block_of(context.comm.rank());
        mpi::Info info;
        mpi::File file;
        mpi::Datatype view;
        const auto step = [&](auto f) { with_region_name(context, transfer, f); };
        step([&] {
            check(MPI_Info_create(info.out()), "MPI_Info_create");
            for (const auto& [key, value] : hints_) {
                check(MPI_Info_set(info.get(), key.c_str(), value.c_str()), "MPI_Info_set");
            }
        });
        step([&] {
            check(MPI_File_open(context.comm.get(), transfer.region.path.c_str(), mode, info.get(), file.out()),
                  "MPI_File_open");
        });
        step([&] {
            view = mpi::subarray(transfer.rows(), transfer.columns(), block, item);
            check(MPI_File_set_view(file.get(), transfer.region.offset, item, view.get(), "native", info.get()),
                  "MPI_File_set_view");
        });
        step([&] {
            const mpi::Span span(block.size(), item);
            MPI_Status status{};
            check(call(file.get(), transfer.data, span.count(), span.type(), &status), name);
            MPI_Count moved = 0;
            check(MPI_Get_elements_x(&status, item, &moved), "MPI_Get_elements_x");
            // Some libraries count only what fits 31 bits, or nothing for an empty block: a short count is an error only where it can be trusted.
            if (moved != MPI_UNDEFINED && moved < block.size() &&
                block.size() * transfer.item() < std::numeric_limits<int>::max()) {
                throw IoError(std::string(name) + " moved " + std::to_string(moved) + " of " +
                              std::to_string(block.size()) + " numbers");
            }
            context.ledger.count().io_calls += 1;
        });
        return block.size() * transfer.item();
    }

    /// MPI-IO's codes are local, so every step is agreed on; what the library says is put behind the file's name.
    template <class F> static void with_region_name(const Context& context, const Transfer& transfer, F f) {
        mpi::together(context.comm, [&] {
            try {
                f();
            } catch (const Error& error) {
                throw IoError(transfer.region.name + ": " + error.what());
            }
        });
    }

    Hints hints_;
};

}  // namespace

std::unique_ptr<Strategy> make_collective(const Hints& hints) { return std::make_unique<Collective>(hints); }

}  // namespace tilewise::io
