// Finds a name that somebody gave in a table of names, or says that there is none such.
#pragma once

#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>

#include "tilewise/base/error.hpp"

namespace tilewise {

/// The place of `name` in `names`; throws UsageError where it is not there, which calls it a `what`.
template <class Names> std::size_t index_of(const Names& names, std::string_view name, std::string_view what) {
    for (std::size_t index = 0; index < std::size(names); ++index) {
        if (names[index] == name) {
            return index;
        }
    }
    throw UsageError("unknown " + std::string(what) + " '" + std::string(name) + "'");
}

}  // namespace tilewise
