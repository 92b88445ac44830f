// The table of processors: what their caches hold, and which products our own tiles compute faster than BLAS.
//
// A row is found by what the processor says of itself, and says nothing that changes from run to run: bits of results
// depend on it. `bench/run.py products` measures what a row for the machine at hand should say.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tilewise::kernel {

/// KiB of the caches that count here: what one core has to itself, and its share of what all share.
struct Caches {
    std::int64_t second, third;
};

/// What a processor says of itself: CPUID's family and model, or an Arm core's implementer and part.
struct ProcessorId {
    enum class Kind { other, amd, intel, arm } kind = Kind::other;
    int family = 0, model = 0;
};

/// Whether our own tiles are the choice, for each type of number.
struct OwnTiles {
    bool float32, float64;
};

struct Processor {
    std::string_view name;
    ProcessorId::Kind kind;
    int family, first_model, last_model;
    Caches caches;
    OwnTiles own;
    std::string_view because;  ///< measured, or what it follows from
};

/// Every row; of those that match, the first counts. The last ones match whatever is left of a kind, and anything.
std::span<const Processor> processors();

/// The row of this processor; the same for the life of the process.
const Processor& processor();

/// The row for what a processor says of itself.
const Processor& processor_of(const ProcessorId& id);

}  // namespace tilewise::kernel
