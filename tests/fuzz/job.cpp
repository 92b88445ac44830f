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

/// Calls what reads the options of an operation, which may refuse them.
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
    if (job.command == "quit") {
        return 0;
    }
    try_each([&] { options_of<multiply::Options>(job); });
    try_each([&] { options_of<transpose::Options>(job); });
    try_each([&] { options_of<StencilOptions>(job); });
    try_each([&] { options_of<svd::Options>(job); });
    try_each([&] { options_of<convert::Options>(job); });
    try_each([&] { options_of<norm::Options>(job); });
    try_each([&] { options_of<MeasureOptions>(job); });
    try_each([&] { one_to_one(job); });
    return 0;
}
