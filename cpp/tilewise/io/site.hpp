// Whether a host sees the files that the front saw and made, and has the memory that the plan counts on: asked before
// any work.
// Design: docs/design/hosts.md
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tilewise::io {

/// What the front has made for this job, under a name that nothing else has: whoever finds it looks into the same
/// folder.
struct Made {
    std::string path;
    std::string name;         ///< of what is to come of it, for messages
    std::int64_t bytes = -1;  ///< its size; −1: it is a folder
    bool root = false;        ///< only rank 0 has to do with it
};

/// An input as it lay before the front: with its first page and others, evenly from `begin` to `end`, as one CRC-32.
struct Seen {
    std::string path, name;
    std::int64_t bytes = 0, modified = 0;  ///< modified: nanoseconds since 1970
    std::uint64_t inode = 0;
    std::int64_t begin = 0, end = 0;
    int pages = 0;
    std::uint32_t digest = 0;
    bool root = false;
};

struct Site {
    std::string host, view;  ///< the front's
    std::vector<Made> made;
    std::vector<Seen> seen;
    std::int64_t memory = 0;  ///< bytes that `node_ranks` ranks of one node need; 0: not known
    int percent = 100;        ///< of what is available, that may be taken
    int node_ranks = 1;
};

/// CRC-32 as zlib computes it, going on from `sum`.
std::uint32_t crc32(std::uint32_t sum, const unsigned char* data, std::size_t size);

/// Throws UsageError unless what was made is here, and of that size. `here` names this host. Waits `patience` seconds
/// for it, as some file systems show hosts what others made only after a moment.
void require_made(const Made& made, const std::string& there, const std::string& here, double patience = 2);
/// Throws UsageError unless the file here is the one that was seen, or a copy of it.
void require_seen(const Seen& seen, const std::string& there, const std::string& here);
/// Throws MemoryError unless `ranks` ranks fit into what is `available`, of which they hold `held` already; −1: nobody
/// knows.
void require_memory(const Site& site, int ranks, std::int64_t available, std::int64_t held, const std::string& here);

/// All of that, by one rank for its node with `ranks` ranks, of which one is rank 0 if `root`; nothing where the node
/// has the front's view of files. Not collective.
void require_site(const Site& site, bool root, int ranks);

}  // namespace tilewise::io
