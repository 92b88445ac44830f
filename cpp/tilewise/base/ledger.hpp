// Where a rank's time and bytes go: exclusive phases, counters, and on request a span for each thing done.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tilewise {

/// A rank is in exactly one phase at any time, so the phases of a run add up to its total.
enum class Phase { input, compute, exchange, output, verify };
inline constexpr std::size_t phase_count = 5;
inline constexpr std::array<std::string_view, phase_count> phase_names{"input", "compute", "exchange", "output",
                                                                       "verify"};

/// What input and output consist of. `convert` is parsing on the way in and formatting on the way out; `move` is
/// dealing out on the way in and collecting on the way out.
enum class Step { none, convert, file, move };
inline constexpr std::size_t step_count = 4;

struct Counters {
    std::int64_t read = 0;       ///< bytes asked of files
    std::int64_t useful = 0;     ///< of those, bytes that this job wanted
    std::int64_t meanwhile = 0;  ///< of those, bytes that came while the rank did something else, or stay mapped
    std::int64_t written = 0;    ///< bytes given to files
    std::int64_t exchanged = 0;  ///< bytes received from other ranks while computing
    std::int64_t copied_in_node = 0;
    std::int64_t messages = 0;
    std::int64_t io_calls = 0;
};

/// What of the counted bytes moved in the seconds of one phase.
struct Moved {
    std::int64_t read = 0, written = 0;
};

struct Span {
    std::string name;
    Phase phase;
    double begin;  ///< seconds since the ledger was started
    double end;
};

class Ledger {
public:
    using Hook = std::function<void(Phase)>;

    /// All seconds and counts up to a moment.
    struct Books {
        std::array<double, phase_count> phases{};
        std::array<std::array<double, step_count>, phase_count> steps{};
        std::array<Moved, phase_count> moved{};
        Counters counters;
        Phase last{};  ///< of the outermost Timed that ended last: what a rank waits for belongs to what it did
    };

    /// Starts at zero, in `phase`. `trace` keeps spans; `on_enter` is called each time that a phase is entered.
    void start(Phase phase, bool trace = false, Hook on_enter = {});
    /// Closes the current phase; `total()` stands still from here on.
    void stop();

    Phase phase() const { return phase_; }
    Step step() const { return step_; }
    double now() const;
    double total() const { return stopped_ - started_ - forgotten_; }
    double seconds(Phase phase) const { return books_.phases[static_cast<std::size_t>(phase)]; }
    double seconds(Phase phase, Step step) const {
        return books_.steps[static_cast<std::size_t>(phase)][static_cast<std::size_t>(step)];
    }
    /// As far as it is settled: all of it once the ledger was stopped.
    const Moved& moved(Phase phase) const { return books_.moved[static_cast<std::size_t>(phase)]; }
    /// What stands there now, to go back to.
    Books books();
    /// As if nothing had happened since `then`: for repetitions that are not the one reported.
    void go_back(const Books& then);
    /// Takes time out of a phase; it is in no other then.
    void forget(Phase phase, double seconds);

    Counters& count() { return books_.counters; }
    const Counters& count() const { return books_.counters; }
    /// A text had a number that could not be held as it is written: stays told, whatever is gone back to. Any thread.
    void tell_loss() { std::atomic_ref(met_loss_).store(true); }
    bool met_loss() const { return met_loss_; }
    const std::vector<Span>& spans() const { return spans_; }

private:
    friend class Timed;
    void enter(Phase phase, Step step);
    void settle();
    /// The phase that this moment belongs to.
    Phase charged() const { return depth_ > 0 ? phase_ : books_.last; }
    /// Keeps a span for the time since the last one, outside of any Timed.
    void fill();

    Phase phase_ = Phase::input;
    Step step_ = Step::none;
    int depth_ = 0;  ///< open Timed
    double started_ = 0, since_ = 0, stopped_ = 0, forgotten_ = 0, told_ = 0;
    Books books_;
    bool met_loss_ = false;
    bool trace_ = false;
    Hook on_enter_;
    std::vector<Span> spans_;
};

/// For its lifetime the rank is in `phase`; then it is again where it was before. Where spans are kept, one with this
/// name is added; an outermost one without a name has that of its phase.
class Timed {
public:
    Timed(Ledger& ledger, Phase phase, std::string_view name) : Timed(ledger, phase, Step::none, name) {}
    Timed(Ledger& ledger, Phase phase, Step step, std::string_view name);
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;
    ~Timed();

private:
    Ledger& ledger_;
    Phase outer_phase_;
    Step outer_step_;
    Phase phase_;
    std::string name_;
    double begin_ = 0;
};

/// From now on the first letter of the phase that a ledger enters or goes back to is kept at `place`, which must live
/// as long as this process. The front looks there when a rank is stopped and can say nothing.
void show_phase_at(char* place);

}  // namespace tilewise
