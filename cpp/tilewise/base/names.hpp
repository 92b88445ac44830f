// Finds a name that somebody gave in a table of names, or says that there is none such.
#pragma once

#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>

#include "tilewise/base/error.hpp"

namespace tilewise {

/// The place of `name` in a table of names, or of entries with a `name`; throws UsageError for an unknown one, which
/// lists the known ones and calls them a `what`.
template <class Table> std::size_t index_of(const Table& table, std::string_view name, std::string_view what) {
    std::string known;
    for (std::size_t index = 0; index < std::size(table); ++index) {
        std::string_view entry;
        if constexpr (requires { table[index].name; }) {
            entry = table[index].name;
        } else {
            entry = table[index];
        }
        if (entry == name) {
            return index;
        }
        known += (known.empty() ? "" : ", ") + std::string(entry);
    }
    throw UsageError("unknown " + std::string(what) + " '" + std::string(name) + "'; expected one of " + known);
}

/// The same as a value of `Enum`, whose table is in the order of its values.
template <class Enum, class Table> Enum enum_named(const Table& table, std::string_view name, std::string_view what) {
    return static_cast<Enum>(index_of(table, name, what));
}

}  // namespace tilewise
