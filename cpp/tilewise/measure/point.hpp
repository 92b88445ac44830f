// What is measured, one point at a time, and what comes of it; what decides when there are samples enough.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tilewise::measure {

/// Ends a point: once there are `least` samples and the 95 % interval of every series' median is within `relative` of
/// it, or there are `most`, or `seconds` have passed (never before three). `warmup` samples come before and do not
/// count.
struct Stop {
    int least = 10, most = 200, warmup = 2;
    double relative = 0.05, seconds = 0.5;
};

/// One line of a table. What a kind does not use stays as it is here.
struct Point {
    std::string kind;  ///< ping, collective, file, memory or compute
    /// ping: blocking, nonblocking, put, get; collective: bcast, scatter, gather, allreduce, alltoallv; file: a
    /// strategy of io; memory: copy, triad, read, write; compute: gemm.
    std::string name;
    std::string pattern;                     ///< ping: roundtrip or stream; collective: library or loop
    std::int64_t bytes = 0;                  ///< of a message, of a block of a file, of one array in memory
    std::vector<std::pair<int, int>> pairs;  ///< ping: the ranks that talk, all at once
    int threads = 1;                         ///< memory, compute: on each rank
    std::int64_t size = 0;                   ///< compute: the product is size × size × size
    std::string dtype;                       ///< compute
    /// compute: each of them in turn, one series each, named after it; none: the one that jobs use
    std::vector<std::string> kernels;
    std::int64_t blocks = 0;  ///< file: of each rank
    std::string path;         ///< file: the sample file, which does not exist yet
    std::string layout;       ///< file: interleaved, contiguous, or per_rank (a file for each rank)
    std::string buffer;       ///< file, ping: malloc, pinned (file), device or managed; empty: malloc
    std::string cache;        ///< file: warm, cold (dropped for this file before reading) or direct
    std::string check;        ///< file: none, counts or content
    int shift = 0;            ///< file: a rank reads what the rank so many above it wrote
    bool sync = false;        ///< file: writing counts until the disk has it
    int pause = 0;            ///< file: seconds before writes of one more series, `write_rested`; 0: there is none
    int gpus = 0;             ///< file, ping: graphics processors of a node; 0: as many as there are
    bool direct = false;      ///< ping: MPI takes addresses on devices; else messages go through pinned memory
};

/// One thing that was timed, once a sample: seconds of one operation, the greatest of all ranks.
struct Series {
    std::string name;
    std::vector<double> samples;
    std::vector<double> by_rank;  ///< the mean over the samples on each rank; on rank 0 only
    int warmup = 0;               ///< samples that came before and did not count, as they really were; on every rank
};

struct Measurement {
    std::vector<Series> series;        ///< on rank 0 only
    std::int64_t inner = 1;            ///< operations in a row of which a sample is the mean
    std::string skipped;               ///< why there is nothing, where there is nothing
    std::vector<std::string> notes;    ///< what a reader must know of these figures
    std::vector<std::string> devices;  ///< of each rank, where buffers are on graphics processors
    bool simulated_devices = false;    ///< those are the tests': see tests/cuda/
    std::string chosen;                ///< compute: what jobs use for this product: tiles or blas
};

}  // namespace tilewise::measure
