// A simulated processor: a rate of operations and one of bytes, which the launch gives.
#include "tilewise/base/work.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include <mpi.h>

namespace tilewise {
namespace {

/// Operations and bytes a second; 0: what is computed is timed by the simulator itself.
struct Processor {
    double operations = 0, bytes = 0;
    bool numbers = true;

    static double number(const char* name) {
        const char* text = std::getenv(name);
        return text != nullptr ? std::strtod(text, nullptr) : 0;
    }
    static Processor by_environment() {
        const char* numbers = std::getenv("TILEWISE_SIMULATED_NUMBERS");
        return {number("TILEWISE_SIMULATED_OPERATIONS"), number("TILEWISE_SIMULATED_BYTES"),
                numbers == nullptr || std::string_view(numbers) != "no"};
    }
};

const Processor& processor() {
    static const Processor found = Processor::by_environment();
    return found;
}

}  // namespace

bool stood_in_for(double operations, double bytes) {
    const Processor& p = processor();
    if (p.operations > 0 && operations + bytes > 0) {
        // The simulator takes operations, too, and hosts are as fast as this processor.
        smpi_execute_flops(std::max(operations, bytes / p.bytes * p.operations));
    }
    return !p.numbers;
}

bool without_numbers() { return !processor().numbers; }

}  // namespace tilewise
