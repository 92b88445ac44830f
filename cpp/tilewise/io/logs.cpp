// Lines end with a checksum of what is before it.
#include "tilewise/io/logs.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <tuple>

#include "tilewise/io/file.hpp"

namespace tilewise::io {
namespace {

/// The piece that a line names, if it is whole.
bool parse(const std::string& line, Standing& piece) {
    const std::size_t space = line.rfind(' ');
    if (space == std::string::npos) {
        return false;
    }
    std::uint64_t check = 0xcbf29ce484222325;  // FNV-1a
    for (std::size_t at = 0; at <= space; ++at) {
        check = (check ^ static_cast<unsigned char>(line[at])) * 0x100000001b3;
    }
    long long numbers[4]{};
    unsigned long long sum = 0, told = 0;
    if (std::sscanf(line.c_str(), "%lld %lld %lld %lld %llx %llx", &numbers[0], &numbers[1], &numbers[2], &numbers[3],
                    &sum, &told) != 6 ||
        told != check) {
        return false;
    }
    piece.block = {{numbers[0], numbers[1]}, {numbers[2], numbers[3]}};
    piece.sum = sum;
    return true;
}

std::tuple<int, std::int64_t, std::int64_t, std::int64_t, std::int64_t> key(const Standing& piece) {
    const grid::Block& block = piece.block;
    return {piece.start, block.rows.begin, block.rows.end, block.columns.begin, block.columns.end};
}

}  // namespace

Logged read_logs(const std::string& folder) {
    Logged found;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
        const std::string name = entry.path().filename().string();
        Standing piece;
        int rank = 0, length = 0;
        if (std::sscanf(name.c_str(), "%d-%d.log%n", &piece.start, &rank, &length) != 2 ||
            length != static_cast<int>(name.size())) {
            continue;
        }
        found.starts = std::max(found.starts, piece.start + 1);
        std::ifstream lines(entry.path(), std::ios::binary);
        for (std::string line; std::getline(lines, line) && !lines.eof();) {
            if (parse(line, piece)) {
                found.pieces.push_back(piece);
            }
        }
    }
    if (error) {
        throw system_error(folder + ": could not be read", error.value());
    }
    std::stable_sort(found.pieces.begin(), found.pieces.end(),
                     [](const Standing& a, const Standing& b) { return key(a) < key(b); });
    const auto same = [](const Standing& a, const Standing& b) { return key(a) == key(b); };
    found.pieces.erase(std::unique(found.pieces.begin(), found.pieces.end(), same), found.pieces.end());
    return found;
}

}  // namespace tilewise::io
