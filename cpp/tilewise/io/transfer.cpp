// The checks around every strategy: nothing that a library says about success is believed without looking at the file.
#include "tilewise/io/transfer.hpp"

#include "tilewise/io/file.hpp"
#include "tilewise/kernel/convert.hpp"
#include "tilewise/kernel/fill.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::io {
namespace {

BlockOf stored_blocks(const Region& region, const WantedBlock& wanted) {
    return [&region, wanted](int rank) { return region.stored(wanted(rank)); };
}

void generate(Context& context, const Region& region, Dtype dtype, const grid::Block& block, std::byte* data) {
    const Timed timed(context.ledger, context.ledger.phase(), Step::convert, "make " + region.name);
    mpi::together(context.comm, [&] {
        // First as the type that the matrix has, then as the type that is computed in, as if it came from a file.
        kernel::fill(data + kernel::raw_offset(block.size(), region.dtype, dtype), block, region.columns, region.dtype,
                     kernel::fill_named(region.generator), region.seed, context.threads);
        kernel::widen(data, block.size(), region.dtype, false, dtype);
    });
}

}  // namespace

std::unique_ptr<Strategy> strategy_named(std::string_view name, const Hints& hints) {
    std::string known;
    for (const auto& entry : strategies) {
        if (entry.name == name) {
            return entry.make(hints);
        }
        known += (known.empty() ? "" : ", ") + std::string(entry.name);
    }
    throw UsageError("unknown way to read and write '" + std::string(name) + "'; known are " + known);
}

void check_file(Context& context, const Region& region) {
    mpi::together(context.comm, [&] {
        if (context.comm.rank() != 0) {
            return;
        }
        const std::int64_t size = PosixFile(region.path, region.name, PosixFile::Mode::read).size();
        const std::int64_t needed = region.file_bytes >= 0 ? region.file_bytes : region.offset + region.bytes();
        if (region.file_bytes >= 0 ? size != needed : size < needed) {
            throw IoError(region.name + ": has " + std::to_string(size) + " bytes where " + std::to_string(needed) +
                          " were expected");
        }
    });
}

void load(Context& context, const Strategy& strategy, const Region& region, Dtype dtype, const WantedBlock& wanted,
          std::byte* data) {
    const grid::Block block = region.stored(wanted(context.comm.rank()));
    if (!region.generator.empty()) {
        generate(context, region, dtype, block, data);
        return;
    }
    check_file(context, region);
    std::byte* raw = data;
    mpi::together(context.comm, [&] { raw += kernel::raw_offset(block.size(), region.dtype, dtype); });
    strategy.read(context, {region, stored_blocks(region, wanted), raw});
    if (region.dtype != dtype || region.swap_bytes) {
        const Timed timed(context.ledger, context.ledger.phase(), Step::convert, "convert " + region.name);
        mpi::together(context.comm, [&] {
            if (kernel::widen(data, block.size(), region.dtype, region.swap_bytes, dtype) > 0) {
                throw UsageError(region.name + ": holds numbers that " + std::string(name_of(dtype)) + " cannot");
            }
        });
    }
}

void begin_store(Context& context, const Region& region) {
    const Timed timed(context.ledger, context.ledger.phase(), Step::file, "reserve " + region.name);
    mpi::together(context.comm, [&] {
        if (context.comm.rank() == 0) {
            PosixFile(region.path, region.name, PosixFile::Mode::write).reserve(region.offset + region.bytes());
        }
    });
}

void end_store(Context& context, const Region& region, bool sync) {
    const Timed timed(context.ledger, context.ledger.phase(), Step::file, sync ? "flush" : "check size");
    if (sync) {  // each node holds its own pages of a shared file
        mpi::together(context.comm, [&] { PosixFile(region.path, region.name, PosixFile::Mode::write).flush(); });
    }
    check_file(context, region);
}

void store(Context& context, const Strategy& strategy, const Region& region, const WantedBlock& wanted, std::byte* data,
           bool sync) {
    begin_store(context, region);
    strategy.write(context, {region, stored_blocks(region, wanted), data});
    end_store(context, region, sync);
}

}  // namespace tilewise::io
