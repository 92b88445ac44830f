// Marks are eight bytes that hardly any matrix holds; where one does hold them, the file says so.
#include "tilewise/io/delivery.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "tilewise/base/buffer.hpp"
#include "tilewise/io/file.hpp"
#include "tilewise/io/samples.hpp"
#include "tilewise/mpi/mpi.hpp"
#include "tilewise/mpi/sum.hpp"

namespace tilewise::io {
namespace {

constexpr std::array<unsigned char, 8> mark{0xD5, 0x1B, 0xA7, 0x63, 0xF2, 0x9C, 0x4E, 0xB8};
constexpr std::int64_t compared_at_once = std::int64_t{1} << 20;  // bytes

std::int64_t element_at(const grid::Share& share, std::int64_t columns, std::int64_t local) {
    const auto at = [](const std::vector<grid::Range>& ranges, std::int64_t index) {
        auto range = ranges.begin();
        while (index >= range->size()) {
            index -= (range++)->size();
        }
        return range->begin + index;
    };
    return at(share.rows, local / share.width()) * columns + at(share.columns, local % share.width());
}

}  // namespace

grid::Range elements_of(const grid::Share& share, std::int64_t columns, std::int64_t begin, std::int64_t end) {
    if (begin >= end) {
        return {0, 0};
    }
    return {element_at(share, columns, begin), element_at(share, columns, end - 1) + 1};
}

template <class F> void Delivery::for_marks(F f) const {
    grid::for_runs(
        share_, transfer_.columns(), within_, [&](std::int64_t first, std::int64_t count, std::int64_t local) {
            const std::int64_t bytes = count * transfer_.item(), some = std::min<std::int64_t>(bytes, std::ssize(mark));
            f(transfer_.data + local * transfer_.item() + bytes - some, some, transfer_.at(first) + bytes - some);
        });
}

Delivery::Delivery(const Transfer& transfer, const grid::Share& share, grid::Range within, std::int64_t cell, int turn)
    : transfer_(transfer),
      share_(share),
      within_(within),
      cell_(cell),
      turn_(turn) {
    for_marks([&](std::byte* place, std::int64_t bytes, std::int64_t) {
        std::memcpy(place, mark.data(), static_cast<std::size_t>(bytes));
    });
}

void Delivery::compare(const PosixFile& file, std::int64_t first, std::int64_t count, std::int64_t local) const {
    Buffer there(static_cast<std::size_t>(std::min(count * transfer_.item(), compared_at_once)));
    for (std::int64_t begin = 0, end = count * transfer_.item(); begin < end; begin += compared_at_once) {
        const std::int64_t some = std::min(end - begin, compared_at_once), offset = transfer_.at(first) + begin;
        file.read(there.data(), some, offset);
        const std::byte* here = transfer_.data + local * transfer_.item() + begin;
        if (std::memcmp(here, there.data(), static_cast<std::size_t>(some)) != 0) {
            const auto different = std::mismatch(here, here + some, there.data()).first - here;
            throw IoError(transfer_.region.name + ": the data read differs from the file at byte " +
                          std::to_string(offset + different) + "; did it change during the run?");
        }
    }
}

void Delivery::check(bool everything) const {
    if (grid::count_in(share_, transfer_.columns(), within_) == 0) {
        return;
    }
    const PosixFile file(transfer_.region.path, transfer_.region.name, PosixFile::Mode::read);
    if (everything) {
        grid::for_runs(
            share_, transfer_.columns(), within_,
            [&](std::int64_t first, std::int64_t count, std::int64_t local) { compare(file, first, count, local); });
        return;
    }
    for_marks([&](const std::byte* place, std::int64_t bytes, std::int64_t offset) {
        if (std::memcmp(place, mark.data(), static_cast<std::size_t>(bytes)) == 0) {
            std::array<std::byte, mark.size()> there{};
            file.read(there.data(), bytes, offset);
            if (std::memcmp(place, there.data(), static_cast<std::size_t>(bytes)) != 0) {
                throw IoError(transfer_.region.name + ": the read returned nothing for byte " + std::to_string(offset) +
                              "; did it change during the run?");
            }
        }
    });
    for (const Sample& sample : samples_of(share_, transfer_.columns(), transfer_.item(), within_, cell_, turn_)) {
        compare(file, sample.first, sample.count, sample.local);
    }
}

Unchanged::Unchanged(const Context& context, const Region& region) : region_(region) {
    if (context.comm.rank() == 0) {
        stat(region.path.c_str(), &before_);  // where this fails, opening fails too, and says why
    }
}

bool Unchanged::still(const Context& context) const {
    bool same = true;
    struct stat now{};
    if (context.comm.rank() == 0) {
        const auto moment = [](const timespec& time) { return std::pair(time.tv_sec, time.tv_nsec); };
        same = stat(region_.path.c_str(), &now) == 0 && now.st_dev == before_.st_dev && now.st_ino == before_.st_ino &&
               now.st_size == before_.st_size && moment(now.st_mtim) == moment(before_.st_mtim) &&
               moment(now.st_ctim) == moment(before_.st_ctim);
    }
    return mpi::of_root(context.comm, same);
}

}  // namespace tilewise::io
