// Fuzzes the reading of jobs: any text is a job or refused in words, takes memory as its size says, and its events can
// be read.
#include "tilewise/worker/job.hpp"

#include <cstdint>
#include <new>
#include <string>

#include <nlohmann/json.hpp>

#include "require.hpp"
#include "tilewise/base/error.hpp"
#include "tilewise/worker/events.hpp"

using namespace tilewise;
using namespace tilewise::worker;

namespace {

/// Calls what turns fields into what an operation takes; each may refuse them.
template <class F> void try_each(F&& f) {
    try {
        f();
    } catch (const Error&) {  // said in words: that is all that is asked
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Job job;
    try {
        job = parse_job(std::string(reinterpret_cast<const char*>(data), size));
    } catch (const Error& error) {
        [[maybe_unused]] const auto said = nlohmann::json::parse(Json{{"message", error.what()}}.text());
        return 0;
    }
    for (const auto& input : job.inputs) {
        try_each([&] { region_of(input); });
    }
    try_each([&] { dtype_of(job.dtype); });
    try_each([&] { options_of(job); });
    try_each([&] { convert_options_of(job); });
    try_each([&] { transpose_options_of(job); });
    try_each([&] { stencil_options_of(job); });
    try_each([&] { svd_options_of(job); });
    try_each([&] { svd_files_of(job); });
    try_each([&] { one_to_one(job); });
    return 0;
}
