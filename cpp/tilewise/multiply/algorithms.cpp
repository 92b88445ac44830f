// Looks algorithms up by name.
#include "tilewise/multiply/algorithms.hpp"

#include "tilewise/base/error.hpp"

namespace tilewise::multiply {

const AlgorithmEntry& algorithm_named(std::string_view name) {
    std::string known;
    for (const auto& entry : algorithms) {
        if (entry.name == name) {
            return entry;
        }
        known += (known.empty() ? "" : ", ") + std::string(entry.name);
    }
    throw UsageError("unknown algorithm '" + std::string(name) + "'; known are " + known);
}

}  // namespace tilewise::multiply
