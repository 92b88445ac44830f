// What is known beside the blocks: a checksum of those at the start, and what each sweep found.
#include "tilewise/svd/kept.hpp"

#include <utility>

#include "tilewise/io/file.hpp"
#include "tilewise/io/journal.hpp"
#include "tilewise/kernel/codec/checksum.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::svd {
namespace {

/// The files hold as many numbers as there are, in rows that may have been planned longer.
io::CheckpointOptions of_height(io::CheckpointOptions options, std::int64_t columns, std::int64_t height) {
    for (io::Region& slot : options.slots) {
        if (slot.rows != columns || slot.columns < height) {
            throw UsageError(slot.name + ": has no room for " + std::to_string(columns) + " columns of " +
                             std::to_string(height) + " numbers");
        }
        slot.columns = height;
    }
    return options;
}

template <class T> std::size_t bytes_of(const Block<T>& block, std::int64_t height) {
    return static_cast<std::size_t>(block.columns.size() * height) * sizeof(T);
}

template <class T> std::int64_t offset_of(const io::Region& slot, const Block<T>& block, std::int64_t height) {
    return slot.offset + block.columns.begin * height * static_cast<std::int64_t>(sizeof(T));
}

constexpr int half = 32;  // bits of a checksum that a number holds exactly

}  // namespace

template <class T>
Kept<T>::Kept(Context& context, io::CheckpointOptions options, std::int64_t columns, std::int64_t height)
    : context_(context),
      height_(height),
      checkpoints_(context, of_height(std::move(options), columns, height)),
      restored_(checkpoints_.restored()) {}

template <class T> Found Kept<T>::restore(Blocks<T>& blocks) {
    begun_ = fingerprint(blocks);
    const io::Saved* saved = checkpoints_.found();
    if (saved == nullptr) {
        return {};
    }
    const std::vector<double>& facts = saved->facts;
    const auto sweeps = static_cast<std::size_t>(saved->version);
    differs_ = facts.size() != 2 + 2 * sweeps ||
               (static_cast<std::uint64_t>(facts[0]) << half | static_cast<std::uint64_t>(facts[1])) != begun_;
    if (differs_) {
        restored_.version.reset();
        return {};
    }
    mpi::together(context_.comm, [&] {
        const Timed timed(context_.ledger, Phase::input, Step::file, "checkpoint");
        const io::Region& slot = checkpoints_.slot(saved->slot);
        const io::PosixFile file(slot.path, slot.name, io::PosixFile::Mode::read);
        for (const Block<T>& block : blocks.all()) {
            const auto bytes = static_cast<std::int64_t>(bytes_of(block, height_));
            context_.ledger.count().io_calls +=
                file.read(reinterpret_cast<std::byte*>(block.data()), bytes, offset_of(slot, block, height_));
            context_.ledger.count().read += bytes;
        }
    });
    const auto first = facts.begin() + 2, second = first + saved->version;
    return {{first, second}, {second, facts.end()}};
}

template <class T> void Kept<T>::look(const Found& found, Blocks<T>& blocks) {
    const io::Checkpoints::Wish wish = checkpoints_.wish(context_);
    if (wish == io::Checkpoints::Wish::none) {
        return;
    }
    const Timed timed(context_.ledger, Phase::output, Step::file, "checkpoint");
    const std::int64_t sweeps = std::ssize(found.off_norm);
    mpi::together(context_.comm, [&] {
        const io::Region& slot = checkpoints_.slot(checkpoints_.next());
        io::PosixFile file(slot.path, slot.name, io::PosixFile::Mode::write);
        for (const Block<T>& block : blocks.all()) {
            const auto* data = reinterpret_cast<const std::byte*>(block.data());
            const auto bytes = static_cast<std::int64_t>(bytes_of(block, height_));
            context_.ledger.count().io_calls += file.write(data, bytes, offset_of(slot, block, height_));
            context_.ledger.count().written += bytes;
            checkpoints_.wrote(sweeps, rows_of(block), data);
        }
        file.close();
    });
    std::vector<double> facts{static_cast<double>(begun_ >> half),
                              static_cast<double>(begun_ & ((std::uint64_t{1} << half) - 1))};
    facts.insert(facts.end(), found.off_norm.begin(), found.off_norm.end());
    facts.insert(facts.end(), found.off_squares.begin(), found.off_squares.end());
    checkpoints_.complete(context_, sweeps, facts);
    if (wish == io::Checkpoints::Wish::save_and_stop) {
        mpi::throw_agreed(context_.comm, io::stopped());
    }
}

template <class T> std::uint64_t Kept<T>::fingerprint(Blocks<T>& blocks) const {
    std::uint64_t sum = 0;
    for (const Block<T>& block : blocks.all()) {
        sum += kernel::checksum(reinterpret_cast<const std::byte*>(block.data()), bytes_of(block, height_),
                                static_cast<std::uint64_t>(block.columns.begin));
    }
    mpi::check(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, context_.comm.get()), "MPI_Allreduce");
    return sum;
}

template class Kept<double>;
template class Kept<kernel::Complex>;

}  // namespace tilewise::svd
