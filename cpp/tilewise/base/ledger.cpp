// Keeps a rank's books: every moment belongs to the innermost open Timed, else to the last one, and so to one phase.
#include "tilewise/base/ledger.hpp"

#include "tilewise/base/clock.hpp"

namespace tilewise {
namespace {

constexpr double least_gap = 1e-6;  // seconds between two spans: less is not worth a third one

char nowhere = 0;
char* shown = &nowhere;

void show(Phase phase) { *static_cast<volatile char*>(shown) = phase_names[static_cast<std::size_t>(phase)][0]; }

}  // namespace

void show_phase_at(char* place) { shown = place; }

void Ledger::start(Phase phase, bool trace, Hook on_enter) {
    *this = Ledger{};
    trace_ = trace;
    on_enter_ = std::move(on_enter);
    phase_ = books_.last = phase;
    show(phase);
    started_ = since_ = stopped_ = told_ = clock_seconds();
    if (on_enter_) {
        on_enter_(phase);
    }
}

void Ledger::stop() {
    settle();
    fill();
    stopped_ = since_;
}

double Ledger::now() const { return clock_seconds() - started_; }

Ledger::Books Ledger::books() {
    settle();
    return books_;
}

void Ledger::go_back(const Books& then) {
    settle();
    for (std::size_t phase = 0; phase < phase_count; ++phase) {
        forgotten_ += books_.phases[phase] - then.phases[phase];
    }
    books_ = then;
}

void Ledger::forget(Phase phase, double seconds) {
    books_.phases[static_cast<std::size_t>(phase)] -= seconds;
    forgotten_ += seconds;
}

void Ledger::settle() {
    const double moment = clock_seconds();
    const auto phase = static_cast<std::size_t>(charged());
    books_.phases[phase] += moment - since_;
    books_.steps[phase][static_cast<std::size_t>(step_)] += moment - since_;
    since_ = moment;
    Moved left{books_.counters.read - books_.counters.meanwhile, books_.counters.written};
    for (const Moved& settled : books_.moved) {
        left.read -= settled.read;
        left.written -= settled.written;
    }
    books_.moved[phase].read += left.read;
    books_.moved[phase].written += left.written;
}

void Ledger::fill() {
    if (trace_ && since_ - told_ > least_gap) {
        spans_.push_back({"between", charged(), told_ - started_, since_ - started_});
    }
}

void Ledger::enter(Phase phase, Step step) {
    settle();
    if (depth_ == 0) {
        fill();
    }
    ++depth_;
    const bool is_new = phase != phase_;
    phase_ = phase;
    step_ = step;
    show(phase);
    if (is_new && on_enter_) {
        on_enter_(phase);
    }
}

Timed::Timed(Ledger& ledger, Phase phase, Step step, std::string_view name)
    : ledger_(ledger),
      outer_phase_(ledger.phase_),
      outer_step_(ledger.step_),
      phase_(phase) {
    ledger_.enter(phase, step);
    if (ledger_.trace_) {
        name_ = name.empty() && ledger_.depth_ == 1 ? phase_names[static_cast<std::size_t>(phase)] : name;
        begin_ = ledger_.since_ - ledger_.started_;
    }
}

Timed::~Timed() {
    ledger_.settle();
    if (ledger_.trace_ && !name_.empty()) {
        ledger_.spans_.push_back({std::move(name_), phase_, begin_, ledger_.since_ - ledger_.started_});
    }
    if (--ledger_.depth_ == 0) {
        ledger_.books_.last = phase_;
        ledger_.told_ = ledger_.since_;
    }
    ledger_.phase_ = outer_phase_;
    ledger_.step_ = outer_step_;
    show(outer_phase_);
}

}  // namespace tilewise
