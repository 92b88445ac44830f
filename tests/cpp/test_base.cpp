// Tests of base: books that add up, memory that is aligned, half precision against the compiler's, threads that report
// failure.
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <doctest/doctest.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/dtype.hpp"
#include "tilewise/base/error.hpp"
#include "tilewise/base/ledger.hpp"
#include "tilewise/base/random.hpp"
#include "tilewise/base/threads.hpp"

using namespace tilewise;

TEST_CASE("phases of a ledger add up to its total and are exclusive") {
    Ledger ledger;
    std::vector<Phase> entered;
    ledger.start(Phase::input, true, [&](Phase phase) { entered.push_back(phase); });
    {
        const Timed compute(ledger, Phase::compute, "outer");
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        const Timed exchange(ledger, Phase::exchange, "inner");
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ledger.stop();

    double sum = 0;
    for (std::size_t phase = 0; phase < phase_count; ++phase) {
        sum += ledger.seconds(static_cast<Phase>(phase));
    }
    CHECK(sum == doctest::Approx(ledger.total()).epsilon(1e-9));
    CHECK(ledger.seconds(Phase::exchange) >= 0.010);
    CHECK(ledger.seconds(Phase::compute) >= 0.005);
    CHECK(ledger.seconds(Phase::compute) < ledger.total() - ledger.seconds(Phase::exchange) + 1e-9);
    CHECK(entered == std::vector{Phase::input, Phase::compute, Phase::exchange});
    std::vector<std::string> names;
    for (const Span& span : ledger.spans()) {
        if (span.name != "between") {
            names.push_back(span.name);
        }
    }
    CHECK(names == std::vector<std::string>{"inner", "outer"});
}

TEST_CASE("what a ledger has no name for belongs to the last phase that ended, in its seconds and in its spans") {
    Ledger ledger;
    ledger.start(Phase::input, true);
    const auto rest = [] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); };
    rest();
    {
        const Timed reading(ledger, Phase::input, "read");
        rest();
    }
    {
        const Timed compute(ledger, Phase::compute, "gemm");
        const Timed exchange(ledger, Phase::exchange, "");  // it is in gemm's span
        rest();
    }
    rest();  // for a rank that is slower
    CHECK(ledger.phase() == Phase::input);
    {
        const Timed output(ledger, Phase::output, "");
        rest();
    }
    rest();
    ledger.stop();

    CHECK(ledger.seconds(Phase::input) >= 0.010);
    CHECK(ledger.seconds(Phase::compute) >= 0.005);
    CHECK(ledger.seconds(Phase::output) >= 0.010);
    std::array<double, phase_count> told{};
    for (const Span& span : ledger.spans()) {
        told[static_cast<std::size_t>(span.phase)] += span.end - span.begin;
    }
    const auto near = [&](Phase phase, double seconds) {
        return std::abs(told[static_cast<std::size_t>(phase)] - seconds) < 1e-5;
    };
    CHECK(near(Phase::input, ledger.seconds(Phase::input)));
    CHECK(near(Phase::compute, ledger.seconds(Phase::compute) + ledger.seconds(Phase::exchange)));
    CHECK(near(Phase::output, ledger.seconds(Phase::output)));
}

TEST_CASE("a ledger that goes back knows nothing of what came between, and its phases still add up to its total") {
    const auto begun = std::chrono::steady_clock::now();
    Ledger ledger;
    ledger.start(Phase::input);
    ledger.count().messages = 3;
    const Ledger::Books then = ledger.books();
    {
        const Timed output(ledger, Phase::output, Step::file, "");
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        ledger.count().messages = 7;
    }
    ledger.go_back(then);
    ledger.stop();
    CHECK(ledger.count().messages == 3);
    CHECK(ledger.seconds(Phase::output) == 0);
    CHECK(ledger.seconds(Phase::output, Step::file) == 0);
    const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    CHECK(ledger.total() <= passed - 0.005);
    CHECK(ledger.seconds(Phase::input) == doctest::Approx(ledger.total()).epsilon(1e-9));
}

TEST_CASE("large buffers lie on huge page borders, read as zero and take no more than was asked for") {
    const Buffer large(std::size_t{5} << 20);
    CHECK(large.bytes() == std::size_t{5} << 20);
    CHECK(reinterpret_cast<std::uintptr_t>(large.data()) % (std::size_t{2} << 20) == 0);
    CHECK(large.data()[large.bytes() - 1] == std::byte{0});
    const Buffer small(10);
    std::memset(small.data(), 1, 10);
    CHECK(Buffer(0).data() == nullptr);
}

TEST_CASE("an array counts in numbers, and gets other memory only where it has too little") {
    const Array<double> none(0);
    CHECK(none.data() != nullptr);
    Array<double> array(3);
    array[2] = 7;
    CHECK(array.holds(3));
    CHECK(array.raw() + 16 == reinterpret_cast<std::byte*>(&array[2]));
    CHECK(array.grow(3)[2] == 7);
    const std::int64_t more = std::int64_t{1} << 17;
    CHECK(!array.holds(more));
    CHECK(array.grow(more)[2] == 0);
    CHECK(array.holds(more));
    array[more - 1] = 8;
    Buffer memory = std::move(array);  // nothing but a buffer
    CHECK(Array<double>(std::move(memory))[more - 1] == 8);
    CHECK_THROWS_AS(Array<double>(std::int64_t{1} << 57), MemoryError);
}

TEST_CASE("memory that nobody has is a MemoryError") { CHECK_THROWS_AS(Buffer(std::size_t{1} << 60), MemoryError); }

TEST_CASE("threads that are kept serve calls within calls, and calls from several threads at once") {
    std::atomic<int> sum = 0;
    const auto nested = [&] {
        for (int round = 0; round < 50; ++round) {
            parallel(3, [&](int outer) { parallel(2, [&](int inner) { sum += 10 * outer + inner; }); });
        }
    };
    {
        std::vector<std::jthread> callers;
        for (int caller = 0; caller < 3; ++caller) {
            callers.emplace_back(nested);
        }
    }
    CHECK(sum == 3 * 50 * (2 * 10 + 2 * 20 + 3));
}

TEST_CASE("an exception on a helper thread reaches the caller") {
    CHECK_THROWS_WITH(parallel(3,
                               [](int thread) {
                                   if (thread == 2) {
                                       throw std::runtime_error("thread 2");
                                   }
                               }),
                      "thread 2");
}

TEST_CASE("ranges cover everything once, also with more threads than work") {
    std::vector<int> seen(5);
    parallel_ranges(8, 5, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t i = begin; i < end; ++i) {
            ++seen[static_cast<std::size_t>(i)];
        }
    });
    CHECK(seen == std::vector<int>(5, 1));
}

TEST_CASE("error kinds survive being caught as anything") {
    try {
        throw IoError("disk");
    } catch (...) {
        CHECK(error_in_flight().kind() == ErrorKind::io);
    }
    try {
        throw 3;
    } catch (...) {
        CHECK(error_in_flight().kind() == ErrorKind::internal);
    }
}
