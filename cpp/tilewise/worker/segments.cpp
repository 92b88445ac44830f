// Read from /proc/self/maps, a line for each mapping; its path is the last word.
#include "tilewise/worker/segments.hpp"

#include <algorithm>
#include <fstream>
#include <unistd.h>

namespace tilewise::worker {

std::vector<std::string> mapped_segments() {
    std::vector<std::string> found;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        const std::size_t at = line.find(" /dev/shm/");
        if (at != std::string::npos && !line.ends_with(" (deleted)")) {
            found.push_back(line.substr(at + 1));
        }
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
}

void take_names_from_segments() {
    for (const std::string& path : mapped_segments()) {
        if (path.starts_with("/dev/shm/mpich_shm_")) {
            unlink(path.c_str());  // another rank of the node may have been first
        }
    }
}

}  // namespace tilewise::worker
