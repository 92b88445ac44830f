// Measures point by point, and looks at the cores before and after, so that what disturbed them shows.
#include <algorithm>
#include <memory>
#include <sched.h>
#include <sys/resource.h>

#include "tilewise/measure/measure.hpp"
#include "tilewise/measure/samples.hpp"
#include "tilewise/mpi/mpi.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/worker/run.hpp"

namespace tilewise::worker {
namespace {

/// As many cores as the kernel counts, also beyond the 1024 of a cpu_set_t.
class CpuSet {
public:
    explicit CpuSet(int cpus) : cpus_(cpus), set_(CPU_ALLOC(static_cast<std::size_t>(cpus))) {
        if (!set_) {
            throw MemoryError("could not get memory for a set of " + std::to_string(cpus) + " cores");
        }
        CPU_ZERO_S(bytes(), set_.get());
    }

    std::size_t bytes() const { return CPU_ALLOC_SIZE(static_cast<std::size_t>(cpus_)); }
    cpu_set_t* get() const { return set_.get(); }
    void add(int cpu) { CPU_SET_S(static_cast<std::size_t>(cpu), bytes(), set_.get()); }
    /// "0, 1, 5"
    std::string spelled() const {
        std::string text;
        for (int cpu = 0; cpu < cpus_; ++cpu) {
            if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes(), set_.get())) {
                text += (text.empty() ? "" : ", ") + std::to_string(cpu);
            }
        }
        return text;
    }

private:
    struct Free {
        void operator()(cpu_set_t* set) const { CPU_FREE(set); }
    };

    int cpus_;
    std::unique_ptr<cpu_set_t, Free> set_;
};

/// Puts this rank on the core that the job gives it; it may share it with others, on purpose.
void pin(const Context& context, const std::vector<int>& cpus) {
    if (cpus.empty()) {
        return;
    }
    mpi::together(context.comm, [&] {
        constexpr int most = 1 << 16;  // no kernel numbers its cores higher
        const int cpu = cpus[static_cast<std::size_t>(context.comm.rank()) % cpus.size()];
        CpuSet allowed(most), wanted(most);
        if (cpu >= 0 && cpu < most) {
            wanted.add(cpu);
        }
        if (sched_setaffinity(0, wanted.bytes(), wanted.get()) != 0) {
            sched_getaffinity(0, allowed.bytes(), allowed.get());
            throw UsageError("rank " + std::to_string(context.comm.rank()) + " was to run on core " +
                             std::to_string(cpu) + ", and may run on " + allowed.spelled() + " of this node only");
        }
    });
}

/// A core that was idle is slow at first: messages of the first 20 ms took a fifth longer.
void wake() {
    constexpr double long_enough = 0.05;
    for (const double begin = measure::now(); measure::now() < begin + long_enough;) {
        measure::yardstick();
    }
}

/// Times that others took this rank's core away.
double involuntary_switches() {
    struct rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_nivcsw);
}

measure::Measurement measure_point(Context& context, const measure::Point& point, const measure::Stop& stop,
                                   const measure::Clock& clock) {
    const auto kind = std::find_if(measure::kinds.begin(), measure::kinds.end(),
                                   [&](const measure::KindEntry& entry) { return entry.name == point.kind; });
    mpi::together(context.comm, [&] {
        if (kind == measure::kinds.end()) {
            throw UsageError("'" + point.kind +
                             "' cannot be measured; expected one of ping, collective, file, memory, compute");
        }
    });
    return kind->measure(context, point, stop, clock);
}

Json said(const measure::Measurement& measured) {
    std::vector<Json> series;
    for (const measure::Series& one : measured.series) {
        series.push_back(
            Json{{"name", one.name}, {"samples", one.samples}, {"by_rank", one.by_rank}, {"warmup", one.warmup}});
    }
    return {
        {"series", series},         {"inner", measured.inner},     {"skipped", measured.skipped},
        {"notes", measured.notes},  {"devices", measured.devices}, {"simulated_devices", measured.simulated_devices},
        {"chosen", measured.chosen}};
}

}  // namespace

Outcome run_measure(Context& context, const Job& job) {
    MeasureOptions wanted;
    mpi::together(context.comm, [&] { wanted = options_of<MeasureOptions>(job); });
    pin(context, wanted.cpus);
    wake();
    const measure::Clock clock = measure::look_at_clock();
    const auto before = measure::gathered(context.comm, measure::yardstick());
    const double switches = involuntary_switches();
    std::vector<Json> points;
    for (std::size_t i = 0; i < wanted.points.size(); ++i) {
        points.push_back(said(measure_point(context, wanted.points[i], wanted.stop, clock)));
        context.report(Phase::compute, static_cast<double>(i + 1) / static_cast<double>(wanted.points.size()));
    }
    const auto taken = measure::gathered(context.comm, involuntary_switches() - switches);
    const auto after = measure::gathered(context.comm, measure::yardstick());
    Outcome outcome;
    outcome.result = {{"points", points},
                      {"clock", {{"resolution", clock.resolution}, {"overhead", clock.overhead}}},
                      {"takes_device_addresses", mpi::takes_device_addresses()},
                      {"yardstick", {{"before", before}, {"after", after}}},
                      {"involuntary_switches", taken}};
    return outcome;
}

}  // namespace tilewise::worker
