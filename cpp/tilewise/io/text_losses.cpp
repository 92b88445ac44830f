// Losses are rare, and who met them depends on how the text was cut, and on how often it was read. So where there are
// any, all lines are looked at once more, each by one rank.
//
//     pieces    rank 0: 0 1 2 3    rank 1: 4 5 6 7     each piece counts; the first number has the least offset
#include <algorithm>
#include <array>
#include <limits>
#include <mutex>

#include "tilewise/base/threads.hpp"
#include "tilewise/io/text_characters.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::io {
namespace {

using mpi::check;
using Kind = kernel::Losses::Kind;

void add(Kind& all, const Kind& some) {
    if (some.count > 0 && (all.count == 0 || some.first < all.first)) {
        all.first = some.first;
        all.column = some.column;
    }
    all.count += some.count;
}

/// The sum over ranks, and the place of the first of all. @note Collective.
TextLoss of_all(const mpi::Communicator& comm, const Kind& mine, const char* file) {
    constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
    const std::int64_t offset = mine.count > 0 ? mine.first - file : none;
    const std::int64_t first = mpi::least_of(comm, offset);
    TextLoss loss{.count = mine.count};
    if (offset != none && offset == first) {
        loss.line = 1 + std::count(file, mine.first, '\n');
        loss.column = mine.column;
    }
    std::array<std::int64_t, 3> own{loss.count, loss.line, loss.column}, sums{};
    check(MPI_Allreduce(own.data(), sums.data(), 3, MPI_INT64_T, MPI_SUM, comm.get()), "MPI_Allreduce");
    return {.count = sums[0], .line = sums[1], .column = sums[2]};
}

}  // namespace

TextLosses count_losses(Context& context, const Region& region) {
    const Timed timed(context.ledger, Phase::input, Step::convert, "count what was lost of " + region.name);
    const mpi::Communicator& comm = context.comm;
    kernel::Losses mine;
    std::optional<Characters> characters;
    mpi::together(comm, [&] {
        characters.emplace(region);
        const kernel::TextStyle style = style_of(region);
        const grid::Range share = grid::Partition(characters->pieces(), comm.size())[comm.rank()];
        std::mutex books;
        parallel_tasks(context.threads, share.size(), [&](std::int64_t task, int) {
            const std::int64_t piece = share.begin + task;
            const char *begin = characters->piece(piece), *end = characters->piece(piece + 1);
            kernel::Losses some;
            kernel::parse_text(begin, end, style, region.dtype, nullptr, std::numeric_limits<std::int64_t>::max() / 2,
                               1, &some);
            characters->release(piece, end);
            const std::lock_guard lock(books);
            add(mine.rounded, some.rounded);
            add(mine.overflow, some.overflow);
        });
    });
    TextLosses all;
    mpi::no_return(comm, [&] {
        const char* file = characters->file();
        all = {of_all(comm, mine.rounded, file), of_all(comm, mine.overflow, file)};
    });
    return all;
}

}  // namespace tilewise::io
