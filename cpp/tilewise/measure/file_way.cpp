// Which strategy goes which way, and which cannot do what.
#include "tilewise/measure/file_way.hpp"

#include <array>

#include "tilewise/base/names.hpp"
#include "tilewise/io/strategy.hpp"

namespace tilewise::measure {
namespace {

struct Ability {
    std::string_view name;
    bool blockwise;  ///< one call a block
    bool alone;      ///< a rank can have a file for itself
    bool direct;     ///< past the page cache
};

/// Those of io, in its order, and one that jobs do not have.
constexpr std::array abilities{
    Ability{"root", false, false, false},
    Ability{"root_collective", false, false, false},
    Ability{"per_rank", true, true, true},
    Ability{"collective", true, false, false},
    Ability{"split_collective", true, false, false},
    Ability{"independent", true, true, false},
    Ability{"shared_pointer", false, false, false},
    Ability{"ordered", false, false, false},
    Ability{"positioned", true, true, true},
    Ability{"sieve", false, false, false},
    Ability{"mapped", true, true, false},
    Ability{"two_phase", false, false, false},
    Ability{"uncached", false, false, true},
    Ability{"gpudirect", true, true, true},
};
static_assert(abilities.size() == io::strategies.size() + 1, "every strategy of io is told what it can");

const Ability& ability(const std::string& name) {
    std::array<std::string_view, abilities.size()> names;
    for (std::size_t i = 0; i < names.size(); ++i) {
        names[i] = abilities[i].name;
    }
    return abilities[index_of(names, name, "I/O strategy")];
}

}  // namespace

std::string refuses(const std::string& name, FileLayout layout, const std::string& cache) {
    const Ability& able = ability(name);
    if (name != "gpudirect" && io::strategies.at(static_cast<std::size_t>(io::strategy_named(name))).only_reads) {
        return name + " only reads, but files are measured both ways";
    }
    if (layout == FileLayout::per_rank && !able.alone) {
        return name +
               " works on one shared file; one file per rank works with per_rank, positioned, independent and "
               "mapped";
    }
    if (name == "per_rank" && layout != FileLayout::per_rank) {
        return "per_rank needs the layout per_rank";
    }
    if (cache == "direct" && !able.direct) {
        return name + " uses the page cache; positioned, per_rank and uncached bypass it";
    }
    return "";
}

bool is_blockwise(const std::string& name) { return ability(name).blockwise; }

std::int64_t stage_bytes(const std::string& name, const FilePlace& place) {
    if (name == "gpudirect") {
        return 0;
    }
    return is_blockwise(name) ? place.bytes + page : place.memory_bytes();
}

std::unique_ptr<FileWay> make_way(const WayFields& fields) {
    if (fields.name == "gpudirect") {
        return make_gpudirect(fields);
    }
    return is_blockwise(fields.name) ? make_blockwise(fields) : make_wholesale(fields);
}

}  // namespace tilewise::measure
